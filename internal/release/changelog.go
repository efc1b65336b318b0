package main

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"time"

	"golang.org/x/mod/semver"
)

var (
	// unreleased is the heading of what the next release has.
	unreleased = []byte("## Unreleased\n")

	// released is the heading of a release, as releaseChangelog writes it.
	released = regexp.MustCompile(`(?m)^## (v\S+)`)

	// entry is a line that is neither empty nor a heading.
	entry = regexp.MustCompile(`(?m)^[^#\s]`)
)

// releaseChangelog gives the section of what is unreleased the version and the date, below a new and empty one.
// It refuses a section without an entry, and a version that does not come after that of the last release.
func releaseChangelog(text []byte, version string, now time.Time) ([]byte, error) {
	before, section, found := bytes.Cut(text, unreleased)
	if !found {
		return nil, fmt.Errorf("has no line %q", bytes.TrimSpace(unreleased))
	}
	if last := released.FindSubmatchIndex(section); last != nil {
		if newest := string(section[last[2]:last[3]]); semver.Compare(version, newest) <= 0 {
			return nil, fmt.Errorf("%s does not come after %s, which is released", version, newest)
		}
		section = section[:last[0]]
	}
	if !entry.Match(section) {
		return nil, errors.New("nothing is unreleased: the section has no entry")
	}
	heading := fmt.Sprintf("%s\n## %s - %s\n", unreleased, version, now.UTC().Format(time.DateOnly))
	return bytes.Join([][]byte{before, []byte(heading), text[len(before)+len(unreleased):]}, nil), nil
}
