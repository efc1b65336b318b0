package server

import (
	"bytes"
	"fmt"
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

// A full disk makes the audit log lose hundreds of lines at once. That must not hide that there is no backup either.
func TestLog_HasALineOfAnotherFailureBesideTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := newLog(&text)
		for minute := range 3 {
			for range 2 * mostLines {
				log.Error("a line of the audit log is lost")
			}
			for range 2 {
				log.Error("the snapshot was not written", "file", "state.snapshot")
			}
			require.Equal(t, minute+1, strings.Count(text.String(), "state.snapshot"))
			require.Equal(t, (minute+1)*(mostLines+1), strings.Count(text.String(), "\n"))
			time.Sleep(linesPause)
		}
	})
}

// Else each failed handshake could be the first line of its beginning.
func TestLog_TakesLinesThatDifferInAnAddressForAlike(t *testing.T) {
	var text bytes.Buffer
	log := newLog(&text)
	for port := range 2 * mostLines {
		for _, host := range []string{"10.0.0.7", "[2001:db8::7]", "[fe80::7]"} {
			log.Warn(fmt.Sprintf("http: TLS handshake error from %s:%d: EOF", host, port))
		}
	}
	log.Warn("http: Accept error: accept tcp 10.0.0.1:8443: accept4: too many open files; retrying in 1s")
	require.Equal(t, mostLines+1, strings.Count(text.String(), "\n"))
	require.Contains(t, text.String(), "too many open files")
}

func TestLog_BoundsLinesThatAllBeginOtherwise(t *testing.T) {
	var text bytes.Buffer
	log := newLog(&text)
	for length := range 1000 {
		log.Warn(strings.Repeat("x", length))
	}
	require.Equal(t, mostLines+mostBeginnings, strings.Count(text.String(), "\n"))
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
