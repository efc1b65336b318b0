package redact_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/internal/redact"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestURL_HasNoPassword(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"here":                            "here",
		"https://10.0.0.1:8443/api":       "https://10.0.0.1:8443/api",
		"https://me@host:8443":            "https://me@host:8443",
		"https://me:secret@host:8443/api": "https://me:xxxxx@host:8443/api",
		"https://me:se#cr%et@host":        "https://me:xxxxx@host",
		"https://me:se/cr?e@t@host":       "https://me:xxxxx@host",
		"https://me:a://secret@host":      "https://me:xxxxx@host",
		"me:secret@host":                  "me:xxxxx@host",
		"me:a://secret@host":              "me:xxxxx@host",
	} {
		require.Equal(t, want, redact.URL(text))
	}
}
