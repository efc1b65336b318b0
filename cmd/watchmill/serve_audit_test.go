package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/server"
)

// The audit log has what each user did, and what was refused, but no health checks.
func TestServe_WritesAnAuditLog(t *testing.T) {
	dir := t.TempDir()
	opts := server.Options{Data: "memory", TokenFile: filepath.Join(dir, "tokens"), AuditLog: filepath.Join(dir, "audit"), Metrics: true}
	require.NoError(t, os.WriteFile(opts.TokenFile, []byte("secret,alice,1\n"), 0o600))
	url, stop := serving(t, opts)
	metricsWith(t, url, "secret", bothReady...) // else /readyz would fail, and be in the log
	for _, r := range []struct{ method, path, token, body string }{
		{"POST", inDefault, "secret", `{"metadata":{"name":"a"},"spec":{"size":3}}`},
		{"GET", inDefault + "/a", "wrong", ""},
		{"GET", "/readyz", "", ""}, {"GET", "/apis", "secret", ""},
		{"GET", "/apis", "", ""},
		{"DELETE", inDefault + "/a", "secret", ""},
	} {
		call(t, r.method, url+r.path, r.token, r.body)
	}
	_, page := call(t, "GET", url+"/metrics", "secret", "")
	require.Contains(t, page, "\nwatchmill_audit_lines_lost_total 0\n")
	stop()
	text, err := os.ReadFile(opts.AuditLog)
	require.NoError(t, err)
	var got []string
	for line := range strings.Lines(string(text)) {
		var l struct {
			Time, User, From, Verb, Resource, Namespace, Name, Path string
			Code                                                    int
			Seconds                                                 float64
		}
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		require.NotEmpty(t, l.Time)
		require.Contains(t, l.From, "127.0.0.1:")
		require.Positive(t, l.Seconds)
		got = append(got, fmt.Sprint(l.Code, " ", strings.Join([]string{l.User, l.Verb, l.Resource, l.Namespace, l.Name, l.Path}, " ")))
	}
	require.Equal(t, []string{
		"201 alice create widgets default a ", "401 system:anonymous get widgets default a ", "401 system:anonymous get    /apis", "200 alice delete widgets default a ",
	}, got)
}

func TestServe_RefusesAnAuditLogThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	_, stop := serving(t, server.Options{Data: "bolt:" + data})
	stop()
	before, err := os.ReadFile(data)
	require.NoError(t, err)
	for problem, file := range map[string]string{
		"--audit-log cannot be written: open":   filepath.Join(dir, "none", "audit"),
		"--audit-log is the file of --data":     data,
		"--audit-log is the file of --snapshot": filepath.Join(dir, "snapshot"),
		"--audit-log is the file of --crd":      manifests,
	} {
		_, errs, status := command(t.Context(), "serve", "--crd", manifests, "--listen", "127.0.0.1:0", "--data", "bolt:"+data, "--snapshot", filepath.Join(dir, "snapshot"), "--audit-log", file)
		require.Equal(t, exitUsage, status)
		require.Contains(t, errs, problem)
	}
	after, err := os.ReadFile(data)
	require.NoError(t, err)
	require.Equal(t, before, after)
}
