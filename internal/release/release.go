package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

const changelogFile = "CHANGELOG.md"

// prepare commits the release of a version in the clone in dir, and returns the commit. If it refuses,
// it has changed nothing. If git cannot commit, the files are left changed.
func prepare(ctx context.Context, dir, version string, now time.Time) (string, error) {
	if err := checkVersion(version); err != nil {
		return "", err
	}
	if err := checkClean(ctx, dir); err != nil {
		return "", err
	}
	changes := map[string][]byte{}
	text, err := os.ReadFile(filepath.Join(dir, changelogFile))
	if err != nil {
		return "", err
	}
	if changes[changelogFile], err = releaseChangelog(text, version, now); err != nil {
		return "", fmt.Errorf("%s: %w", changelogFile, err)
	}
	files, err := git(ctx, dir, "ls-files", "go.mod", "*/go.mod")
	if err != nil {
		return "", err
	}
	for _, name := range strings.Fields(files) {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		if changes[name], err = releaseModule(name, text, version); err != nil {
			return "", err
		}
	}
	for name, text := range changes {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return "", err
		}
	}
	if _, err := git(ctx, dir, "commit", "--quiet", "--all", "--message", "Release "+version); err != nil {
		return "", err
	}
	return git(ctx, dir, "rev-parse", "--short", "HEAD")
}

// checkVersion refuses what cannot be the version of a release.
func checkVersion(version string) error {
	if !semver.IsValid(version) || semver.Canonical(version) != version || module.IsPseudoVersion(version) {
		return fmt.Errorf("%q is not a version such as v0.1.0 or v0.2.0-rc.1", version)
	}
	return module.Check(mainModule, version)
}

// checkClean refuses a tree with changes that are not committed.
func checkClean(ctx context.Context, dir string) error {
	changed, err := git(ctx, dir, "status", "--porcelain")
	if err == nil && changed != "" {
		err = errors.New("commit or remove these changes first:\n" + changed)
	}
	return err
}

// git runs git in dir and returns what it prints.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w\n%s", args[0], err, stderr.Bytes())
	}
	return strings.TrimRight(string(out), "\n"), nil
}
