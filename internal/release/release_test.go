package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const unversioned = "v0.0.0-00010101000000-000000000000"

// files are those of a small clone: a go.mod each of the module itself, of one that is published, and of one that is not.
func files() map[string]string {
	return map[string]string{
		changelogFile: "# Changelog\n\n## Unreleased\n\n### Added\n\n- A thing.\n\n## v0.2.0 - 2026-01-02\n\n- Another.\n",
		"go.mod":      "module github.com/watchmill/watchmill\n\ngo 1.26.0\n\nrequire k8s.io/api v0.37.2\n",
		"serve/lease/go.mod": "module github.com/watchmill/watchmill/serve/lease\n\ngo 1.26.0\n\n" +
			"replace github.com/watchmill/watchmill => ../..\n\nrequire (\n\tgithub.com/watchmill/watchmill " + unversioned + "\n\tk8s.io/api v0.37.2\n)\n",
		"interop/go.mod": "module github.com/watchmill/watchmill/interop\n\ngo 1.26.0\n\n" +
			"require github.com/watchmill/watchmill/serve/lease " + unversioned + "\n\nrequire github.com/watchmill/watchmill v0.2.0 // indirect\n",
	}
}

// repository makes one of files.
func repository(t *testing.T, files map[string]string) string {
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, name), text)
	}
	commitAll(t, dir)
	return dir
}

// read returns the texts of the files that files has.
func read(t *testing.T, dir string) map[string]string {
	texts := files()
	for name := range texts {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		texts[name] = string(text)
	}
	return texts
}

func TestPrepare_CommitsVersionsAndTheChangelog(t *testing.T) {
	dir := repository(t, files())
	commit, err := prepare(t.Context(), dir, "v0.3.0-rc.1", time.Date(2026, 3, 4, 23, 0, 0, 0, time.UTC))
	require.NoError(t, err)
	want := files()
	want[changelogFile] = strings.Replace(want[changelogFile], "## Unreleased\n", "## Unreleased\n\n## v0.3.0-rc.1 - 2026-03-04\n", 1)
	for _, name := range []string{"serve/lease/go.mod", "interop/go.mod"} {
		want[name] = strings.NewReplacer(unversioned, "v0.3.0-rc.1", "v0.2.0", "v0.3.0-rc.1").Replace(want[name])
	}
	require.Equal(t, want, read(t, dir))
	require.Equal(t, commit+" Release v0.3.0-rc.1", output(t, nil, dir, "git", "log", "-1", "--format=%h %s"))
	require.Empty(t, output(t, nil, dir, "git", "status", "--porcelain"))
	require.Empty(t, output(t, nil, dir, "git", "tag"))

	_, err = prepare(t.Context(), dir, "v0.3.0", time.Now())
	require.ErrorContains(t, err, "nothing", "what a candidate has is in its section")
}

func TestPrepare_RefusesAVersion(t *testing.T) {
	dir := repository(t, files())
	for version, problem := range map[string]string{
		"":                                     `"" is not a version such as v0.1.0`,
		"0.3.0":                                "is not a version such as",
		"v0.3":                                 "is not a version such as",
		"v0.3.0+linux":                         "is not a version such as",
		"v0.3.0-0.20260102030405-0123456789ab": "is not a version such as",
		"v2.0.0":                               "should be v0 or v1, not v2",
		"v0.1.9":                               "v0.1.9 does not come after v0.2.0",
		"v0.2.0":                               "v0.2.0 does not come after v0.2.0",
		"v0.2.0-rc.1":                          "v0.2.0-rc.1 does not come after v0.2.0",
	} {
		_, err := prepare(t.Context(), dir, version, time.Now())
		require.ErrorContains(t, err, problem, version)
	}
	require.Equal(t, files(), read(t, dir))
}

func TestPrepare_RefusesATree(t *testing.T) {
	for problem, change := range map[string]map[string]string{
		"has no line":           {changelogFile: "# Changelog\n\n- A thing.\n"},
		"nothing is unreleased": {changelogFile: "# Changelog\n\n## Unreleased\n\n### Added\n\n## v0.2.0 - 2026-01-02\n\n- Another.\n"},
		"requires github.com/watchmill/watchmill/interop, which is not published": {
			"serve/lease/go.mod": "module github.com/watchmill/watchmill/serve/lease\n\nrequire github.com/watchmill/watchmill/interop " + unversioned + "\n",
		},
		"unknown directive": {"interop/go.mod": "modul x\n"},
	} {
		texts := files()
		for name, text := range change {
			texts[name] = text
		}
		dir := repository(t, texts)
		_, err := prepare(t.Context(), dir, "v0.3.0", time.Now())
		require.ErrorContains(t, err, problem)
		require.Equal(t, texts, read(t, dir))
	}
}

func TestPrepare_RefusesChangesThatAreNotCommitted(t *testing.T) {
	dir := repository(t, files())
	write(t, filepath.Join(dir, "new.go"), "package new\n")
	_, err := prepare(t.Context(), dir, "v0.3.0", time.Now())
	require.ErrorContains(t, err, "commit or remove these changes first:\n?? new.go")
	require.Equal(t, files(), read(t, dir))
}

func TestPrepare_ReleasesForTheFirstTime(t *testing.T) {
	texts := files()
	texts[changelogFile] = "# Changelog\n\n## Unreleased\n\n- A thing.\n"
	dir := repository(t, texts)
	_, err := prepare(t.Context(), dir, "v0.1.0", time.Date(2026, 3, 4, 0, 0, 0, 0, time.UTC))
	require.NoError(t, err)
	require.Equal(t, "# Changelog\n\n## Unreleased\n\n## v0.1.0 - 2026-03-04\n\n- A thing.\n", read(t, dir)[changelogFile])
}

func TestRun_SaysHowToPublish(t *testing.T) {
	var out bytes.Buffer
	dir := repository(t, files())
	require.ErrorContains(t, run(t.Context(), dir, nil, &out), "give the version to release")
	require.NoError(t, run(t.Context(), dir, []string{"v0.3.0"}, &out))
	commit := output(t, nil, dir, "git", "rev-parse", "--short", "HEAD")
	const tags = "v0.3.0 store/backend/etcd/v0.3.0 serve/lease/v0.3.0 serve/corekinds/v0.3.0 registry/crd/cel/v0.3.0 cmd/watchmill/watchmill-etcd/v0.3.0"
	require.Equal(t, "Commit "+commit+" releases v0.3.0. Once .ci/run passes, publish it:\n\n"+
		"  for tag in "+tags+"; do git tag $tag "+commit+"; done\n"+
		"  git push --atomic origin HEAD "+tags+"\n", out.String())
}
