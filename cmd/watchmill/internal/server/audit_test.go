package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/serve"
)

// A disk that hangs keeps the process no longer than the file of objects does.
func TestAudit_EndsWithoutTheLinesThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &auditLog{name: "audit", log: slog.New(slog.DiscardHandler), lines: make(chan []byte, maxAuditLines), stop: make(chan struct{})}
		disk := make(chan struct{})
		a.done.Go(func() {
			<-a.lines
			<-disk
		})
		for range 3 {
			a.request(t.Context(), serve.Audited{Request: &serve.Request{Verb: "get", Resource: "widgets"}, Code: 200})
		}
		synctest.Wait()
		require.EqualError(t, a.close(), fmt.Sprintf("--audit-log: writing to audit has hung for %v: its last 3 lines are lost", hangAfter))
		close(disk)
	})
}

// A line names both users, what was asked for, and how the request ended.
func TestAudit_LinesHaveAllOfARequest(t *testing.T) {
	a := &auditLog{lines: make(chan []byte, 1)}
	a.request(t.Context(), serve.Audited{
		Request: &serve.Request{Verb: "update", Group: "example.com", Version: "v1", Resource: "widgets", Subresource: "status", Namespace: "shop", Name: "a", Path: "/apis"},
		User:    serve.User{Name: "alice"}, Impersonated: &serve.User{Name: "bob"}, From: "10.0.0.1:7", Code: 409,
		Began: time.Date(2026, 1, 2, 5, 4, 5, 0, time.FixedZone("", 7200)), Took: 1500 * time.Millisecond,
	})
	require.JSONEq(t, `{
		"time": "2026-01-02T03:04:05Z", "user": "alice", "impersonated": "bob", "from": "10.0.0.1:7", "verb": "update", "group": "example.com",
		"version": "v1", "resource": "widgets", "subresource": "status", "namespace": "shop", "name": "a", "code": 409, "seconds": 1.5
	}`, string(<-a.lines))
}

// What waits for the disk is bounded, also by the line that is added last. Each < takes six bytes of it.
func TestAudit_LinesTakeNoMoreMemoryThanTheyMay(t *testing.T) {
	a := &auditLog{lines: make(chan []byte, maxAuditLines)}
	large := &serve.Request{Verb: "get", Resource: "widgets", Name: strings.Repeat("<", 64<<10)}
	for range 100 {
		a.request(t.Context(), serve.Audited{Request: large, Code: 404})
	}
	waiting := 0
	for range len(a.lines) {
		waiting += len(<-a.lines)
	}
	require.LessOrEqual(t, waiting, maxAuditBytes)
	require.Greater(t, waiting, maxAuditBytes/2)
	require.EqualValues(t, waiting, a.bytes.Load())
	require.Positive(t, a.lost.Load())
	require.EqualValues(t, a.lost.Load(), testutil.ToFloat64(a.collectors()[0]))
}

// A terminal takes U+009B for the beginning of a command, as it does ESC [.
func TestAudit_LinesHaveNoControlCharacters(t *testing.T) {
	a := &auditLog{lines: make(chan []byte, 1)}
	name := "a\u009b31mü\u007f\x1b[0m\n"
	a.request(t.Context(), serve.Audited{Request: &serve.Request{Verb: "get", Resource: "widgets", Name: name}, Code: 404})
	line, _ := bytes.CutSuffix(<-a.lines, []byte("\n"))
	require.NotRegexp(t, `[[:cntrl:]\x{80}-\x{9f}]`, string(line))
	var read auditLine
	require.NoError(t, json.Unmarshal(line, &read))
	require.Equal(t, name, read.Name)
}

// Lines appended to any of these would damage it.
func TestAudit_FindsTheFlagWhoseFileItWouldBe(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	opts := Options{
		Data: "bolt:data", Snapshot: "snapshot", Kubeconfig: "kubeconfig", TokenFile: "token-file", CertFile: "tls-cert", KeyFile: "tls-key",
		ClientCAFile: "client-ca", UpstreamTokenFile: "upstream-token-file", CRDs: []string{"other", "crd"},
	}
	for _, name := range []string{"data", "snapshot", "kubeconfig", "token-file", "tls-cert", "tls-key", "client-ca", "upstream-token-file", "crd"} {
		require.Equal(t, "--"+name, opts.flagOf(filepath.Join(dir, name)))
	}
	require.Empty(t, opts.flagOf("audit"))
	opts.Data = "memory"
	require.Empty(t, opts.flagOf("memory"), "that is no file")
}
