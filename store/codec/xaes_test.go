package codec

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
)

// The vectors of the specification; the keys make CMAC's subkey with and
// without a carry.
func TestExtendedGCM_IsWhatTheSpecificationSays(t *testing.T) {
	nonce, plain := []byte("ABCDEFGHIJKLMNOPQRSTUVWX"), []byte("XAES-256-GCM")
	for _, c := range []struct {
		key       byte
		aad, want string
	}{
		{1, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
		{3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
	} {
		x, err := newExtendedGCM(bytes.Repeat([]byte{c.key}, KeySize))
		require.NoError(t, err)
		sealed, err := x.seal(nil, nonce, plain, []byte(c.aad))
		require.NoError(t, err)
		require.Equal(t, c.want, hex.EncodeToString(sealed))
		opened, err := x.open(nonce, sealed, []byte(c.aad))
		require.NoError(t, err)
		require.Equal(t, plain, opened)
	}
}
