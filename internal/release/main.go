// Command release prepares the commit of a release:
//
//	go run ./internal/release v0.1.0
//
//	CHANGELOG.md ──▶ what is unreleased gets the version and the date ──┐
//	each go.mod  ──▶ requires our modules at the version ───────────────┴──▶ commit ──▶ tags to make, printed
//
// All published modules have the same version. The command makes no tags and pushes nothing: the checks
// come first. CONTRIBUTING.md lists the steps of a release.
//
// In a clone each module is built with the others of the clone, also where it requires a version that
// is not published yet. A directive replace in its go.mod does that, which is ignored when the module
// is a dependency. But "go install" refuses to install a program of a module with replace. So the
// replacements of cmd/watchmill/watchmill-etcd are in a go.work beside its go.mod.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

func main() {
	if err := run(context.Background(), ".", os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run prepares a release of the clone in dir, and says how to publish it.
func run(ctx context.Context, dir string, args []string, stdout io.Writer) error {
	if len(args) != 1 {
		return errors.New("give the version to release, such as v0.1.0")
	}
	version := args[0]
	commit, err := prepare(ctx, dir, version, time.Now())
	if err != nil {
		return err
	}
	names := strings.Join(tags(version), " ")
	_, err = fmt.Fprintf(stdout, "Commit %s releases %s. Once .ci/run passes, publish it:\n\n"+
		"  for tag in %s; do git tag $tag %s; done\n"+
		"  git push --atomic origin HEAD %s\n", commit, version, names, commit, names)
	return err
}
