package loopback_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/watchmill/watchmill/internal/loopback"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestIs_KnowsTheHostsThatOthersDoNotReach(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.1.2.3": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "0.0.0.0": false, "::": false, "192.0.2.1": false, "example.com": false, "localhost.example.com": false,
		"127.0.0.1:80": false, "[::1]": false, "127.1": false,
	} {
		require.Equal(t, want, loopback.Is(host), host)
	}
}
