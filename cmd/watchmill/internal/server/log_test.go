package server

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
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
		for minute := 1; minute < 10; minute++ {
			require.Contains(t, lines[60*minute], "lines_left_out_before=5940")
		}
		require.Contains(t, lines[600], "the disk has failed")
	})
}

func TestLog_HasAnErrorBesideTooManyWarnings(t *testing.T) {
	var text bytes.Buffer
	log := newLog(&text)
	for range 2 * mostLines {
		log.Warn("handshake failed")
	}
	log.Error("the disk has failed")
	lines := strings.Split(strings.TrimSpace(text.String()), "\n")
	require.Len(t, lines, mostLines+1)
	require.Contains(t, lines[mostLines], "the disk has failed")
}

func TestLog_LeavesOutWhatIsTooMuchAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := newLog(&text)
		var all sync.WaitGroup
		for level := range slog.Level(4) {
			for range 4 {
				all.Go(func() {
					for range 2 * mostLines {
						log.Log(t.Context(), level, "handshake failed")
					}
				})
			}
		}
		all.Wait()
		require.Equal(t, 4*mostLines, strings.Count(text.String(), "\n"))
	})
}
