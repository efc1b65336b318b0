package interop_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func manifest(name string, size string) string {
	return "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: " + name + "\nspec:\n  size: " + size + "\n"
}

func TestKubectl_ReadsAndWrites(t *testing.T) {
	withEachKubectl(t, func(t *testing.T, _ *server, k *kubectl) {
		require.Regexp(t, `widgets +wd +example.com/v1 +true +Widget`, k.run("api-resources"))
		require.Contains(t, k.run("explain", "widget.spec.size"), "How large it is.")
		require.Contains(t, k.run("explain", "widget.metadata.labels"), "Names and values by which selectors find the object.")
		unserved, failure := k.try(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}`, "apply", "-f", "-")
		require.Error(t, failure)
		require.Contains(t, unserved, `no matches for kind "Pod" in version "v1"`)
		require.Equal(t, "widget.example.com/a created\n", k.with(manifest("a", "1"), "create", "-f", "-"))
		require.Equal(t, "widget.example.com/b created\n", k.with(manifest("b", "2"), "apply", "-f", "-"))
		require.Equal(t, "widget.example.com/b configured\n", k.with(manifest("b", "3"), "apply", "-f", "-"))
		require.Equal(t, "widget.example.com/b unchanged\n", k.with(manifest("b", "3"), "apply", "-f", "-"))
		require.Regexp(t, `^NAME +SIZE +AGE\na +1 +\S+\nb +3 +\S+\n$`, k.run("get", "wd"))
		require.Contains(t, k.run("get", "widget", "a", "-o", "yaml"), "  size: 1\n")
		require.Equal(t, "a b", k.run("get", "widgets", "-o", "jsonpath={.items[*].metadata.name}"))
		require.Equal(t, "widget.example.com/a labeled\n", k.run("label", "widget", "a", "app=web"))
		require.Equal(t, "widget.example.com/a\n", k.run("get", "widgets", "-l", "app=web", "-o", "name"))
		require.Equal(t, "widget.example.com/b\n", k.run("get", "widgets", "--field-selector", "metadata.name=b", "-o", "name"))
		require.Contains(t, k.run("describe", "widget", "a"), "Size:  1")
		require.Contains(t, k.run("patch", "widget", "a", "--type=merge", "-p", `{"spec":{"size":5}}`), "patched")
		require.Contains(t, k.run("patch", "widget", "a", "--type=json", "-p", `[{"op":"replace","path":"/spec/size","value":6}]`), "patched")
		require.Contains(t, k.run("get", "widget", "a", "--no-headers"), " 6 ")
		require.Contains(t, k.with(manifest("c", "1"), "create", "--dry-run=server", "-f", "-"), "created (server dry run)")
		out, err := k.try("", "get", "widget", "c")
		require.Error(t, err)
		require.Equal(t, "Error from server (NotFound): widgets.example.com \"c\" not found\n", out)
		require.Equal(t, "widget.example.com \"b\" deleted from default namespace\n", k.run("delete", "widget", "b"))
	})
}

func TestKubectl_IsToldWhatIsWrong(t *testing.T) {
	withEachKubectl(t, func(t *testing.T, _ *server, k *kubectl) {
		out, err := k.try(manifest("Bad_Name", "1"), "create", "-f", "-")
		require.Error(t, err)
		require.Contains(t, out, `The Widget "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name"`)
		out, err = k.try(manifest("a", "1")+"  colour: red\n", "create", "-f", "-", "--validate=strict")
		require.Error(t, err)
		require.Contains(t, out, `unknown field "spec.colour"`)
		out, err = k.try("", "get", "widgets", "--field-selector", "spec.nothing=1")
		require.Error(t, err)
		require.Contains(t, out, `unknown field "spec.nothing"`)
	})
}

func TestKubectl_Scales(t *testing.T) {
	withEachKubectl(t, func(t *testing.T, _ *server, k *kubectl) {
		k.with(manifest("a", "1"), "create", "-f", "-")
		require.Equal(t, "widget.example.com/a scaled\n", k.run("scale", "widget/a", "--replicas=3"))
		require.Equal(t, "widget.example.com/a scaled\n", k.run("scale", "widget/a", "--current-replicas=3", "--replicas=0"), "which reads, and updates that revision")
		require.Contains(t, k.run("get", "widget", "a", "--no-headers"), " 0 ")
		out, err := k.try("", "scale", "widget/a", "--current-replicas=3", "--replicas=5")
		require.Error(t, err)
		require.Contains(t, out, "Expected replicas to be 3, was 0")
		require.Equal(t, "autoscaling/v1 Scale a", k.run("get", "widget", "a", "--subresource=scale", "-o", "jsonpath={.apiVersion} {.kind} {.metadata.name}"))
	})
}

func TestKubectl_WaitsForConditionsAndDeletions(t *testing.T) {
	withEachKubectl(t, func(t *testing.T, s *server, k *kubectl) {
		watches := func(n int) {
			t.Helper()
			require.Eventually(t, func() bool { return len(s.widgets.Engine().Watches()) == n }, patience, time.Millisecond)
		}
		k.with(strings.Replace(manifest("a", "1"), "  name: a\n", "  name: a\n  finalizers: [example.com/x]\n", 1), "create", "-f", "-")
		ready := k.command(t.Context(), "", "wait", "--for=condition=Ready", "widget/a", "--timeout=5m")
		var out bytes.Buffer
		ready.Stdout, ready.Stderr = &out, &out
		require.NoError(t, ready.Start())
		watches(1) // so that what it waits for comes as an event
		k.run("patch", "widget", "a", "--subresource=status", "--type=merge", "-p",
			`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Done","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
		require.NoError(t, ready.Wait(), out.String())
		require.Contains(t, out.String(), "widget.example.com/a condition met\n")
		watches(0)
		k.run("delete", "widget", "a", "--wait=false")
		gone := k.command(t.Context(), "", "wait", "--for=delete", "widget/a", "--timeout=5m")
		require.NoError(t, gone.Start())
		watches(1)
		k.run("patch", "widget", "a", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
		require.NoError(t, gone.Wait())
	})
}

func TestKubectl_Watches(t *testing.T) {
	withEachKubectl(t, func(t *testing.T, s *server, k *kubectl) {
		s.fill(t, 1)
		ctx, stop := context.WithTimeout(t.Context(), patience)
		defer stop()
		cmd := k.command(ctx, "", "get", "widgets", "-w", "--no-headers", "--output-watch-events")
		lines, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		defer func() { stop(); _ = cmd.Wait() }() // it is killed
		read := func(want string) {
			t.Helper()
			var line []byte
			for one := make([]byte, 1); ; {
				_, err := lines.Read(one)
				require.NoError(t, err)
				if one[0] == '\n' {
					break
				}
				line = append(line, one[0])
			}
			require.Regexp(t, want, string(line))
		}
		read(`^ADDED +w0000 +0 `)
		s.resize(t, "w0000", 7)
		read(`^MODIFIED +w0000 +7 `)
		k.run("delete", "widget", "w0000")
		read(`^DELETED +w0000 +7 `)
	})
}

// The first time the editor writes a field that the kind does not have, and the second time it corrects it.
func TestKubectl_EditLetsItsUserCorrectAMistake(t *testing.T) {
	editor := filepath.Join(t.TempDir(), "editor")
	require.NoError(t, os.WriteFile(editor, []byte(`#!/bin/sh
if grep -q wrong: "$1"; then sed -e '/wrong:/d' -e 's/size: 1/size: 2/'; else awk '{print} /^spec:/ {print "  wrong: 1"}'; fi <"$1" >"$1.new"
cat "$1.new" >"$1"
`), 0o700))
	t.Setenv("KUBE_EDITOR", editor)
	withEachKubectl(t, func(t *testing.T, _ *server, k *kubectl) {
		k.with(manifest("a", "1"), "apply", "-f", "-")
		require.Contains(t, k.run("edit", "widget", "a"), "widget.example.com/a edited")
		require.Equal(t, "2", k.run("get", "widget", "a", "-o", "jsonpath={.spec.size}"))
	})
}

// What kubectl prints of several objects is a v1 List, even if the server has no kinds in v1.
func TestKubectl_AppliesWhatItHasPrinted(t *testing.T) {
	withEachKubectl(t, func(t *testing.T, _ *server, k *kubectl) {
		for _, name := range []string{"a", "b"} {
			k.with(manifest(name, "1"), "create", "-f", "-")
		}
		saved := k.run("get", "widgets", "-o", "yaml")
		k.run("delete", "widgets", "--all")
		require.Equal(t, "widget.example.com/a created\nwidget.example.com/b created\n", k.with(saved, "apply", "-f", "-"))
		require.Equal(t, "a b", k.run("get", "widgets", "-o", "jsonpath={.items[*].metadata.name}"))
		require.Contains(t, k.with(saved, "delete", "-f", "-"), `"b" deleted`)
		require.Equal(t, "widget.example.com/a created\nwidget.example.com/b created\n", k.with(saved, "create", "-f", "-"))
	})
}
