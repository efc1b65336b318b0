package serve_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/watchmill/watchmill/internal/pipenet"
)

// Clients in Go, client-go's among them, keep a connection for the next request for 90 s. If the server closed it
// then, a write that is under way meanwhile would fail, and its client would not know whether it was done.
func TestHarden_KeepsConnectionsLongerThanClientsDo(t *testing.T) {
	inBubbleOver(t, "HTTP/1.1", func(t *testing.T, s *server) {
		by := s.client.Transport.(*http.Transport)
		near := by.DialContext
		by.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := near(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return pipenet.Far(conn, 50*time.Millisecond), nil
		}
		by.IdleConnTimeout = http.DefaultTransport.(*http.Transport).IdleConnTimeout
		s.create("first", 1)
		for pause := by.IdleConnTimeout - 200*time.Millisecond; pause <= by.IdleConnTimeout; pause += 20 * time.Millisecond {
			time.Sleep(pause)
			s.create(fmt.Sprint("after-", pause.Milliseconds()), 1)
		}
		by.CloseIdleConnections()
		time.Sleep(time.Second)
		synctest.Wait() // until the server knows
	})
}
