package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/sim/report"
)

func TestTerminal_WhatIsNoneGetsPlainText(t *testing.T) {
	require.Equal(t, report.Terminal{}, screen(&bytes.Buffer{}))
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer f.Close()
	require.Equal(t, report.Terminal{}, screen(f))
}

func TestTerminal_ColorsAreForbiddenByTheEnvironment(t *testing.T) {
	for _, env := range []struct {
		noColor, term string
		want          bool
	}{{"", "xterm-256color", true}, {"", "", true}, {"1", "xterm", false}, {"0", "xterm", false}, {"", "dumb", false}} {
		require.Equal(t, env.want, colors(func(name string) string {
			return map[string]string{"NO_COLOR": env.noColor, "TERM": env.term}[name]
		}), env)
	}
}
