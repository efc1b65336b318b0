package remote_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A failure is told by what the server has said of it, and by its code if that is nothing.
func TestStatusError_TellsWhatTheServerSaid(t *testing.T) {
	for answer, want := range map[string]string{
		`403 {"kind":"Status","code":403,"reason":"Forbidden","message":"not you"}`: "403 Forbidden: not you",
		`403 {"kind":"Status","code":403,"message":"not you"}`:                      "403: not you",
		`403 {"kind":"Status","code":403,"reason":"Forbidden"}`:                     "403 Forbidden: Forbidden",
		`503 <html>busy</html>`: "503: Service Unavailable",
		`599 `:                  "/widgets/a: 599",
	} {
		_, err := backendAt(t, frames(t, answer).URL).Get(t.Context(), "default/a")
		require.True(t, strings.HasSuffix(err.Error(), want), "%v", err)
	}
}
