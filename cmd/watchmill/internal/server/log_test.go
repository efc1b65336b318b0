package server

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// What a client causes a hundred times a second does not fill the disk, nor hide what is worse.
func TestLog_LeavesOutWhatIsTooMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := newLog(&text)
		for range 10 * 60 * 100 {
			log.With("from", "10.0.0.1").WithGroup("tls").Warn("handshake failed")
			time.Sleep(10 * time.Millisecond)
		}
		log.Error("the disk has failed")
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		require.Len(t, lines, 10*60+1)
		require.NotContains(t, lines[59], "left_out")
		require.Contains(t, lines[60], "lines_left_out_before=5940")
		require.Contains(t, lines[600], "the disk has failed")
	})
}
