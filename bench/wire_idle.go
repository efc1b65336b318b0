package bench

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// idleOne opens n watches over HTTP/1.1 and reads no more than the beginning of
// each answer. The client has no goroutine and no buffer for a connection.
func (s *wire) idleOne(ctx context.Context, from uint64, n int) error {
	request := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n", s.target(Selection{}, from))
	answer := make([]byte, 4096)
	for range n {
		conn, err := s.dial(ctx)
		if err != nil {
			return err
		}
		if _, err := conn.Write(request); err != nil {
			return err
		}
		read, err := conn.Read(answer)
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(answer[:read], []byte("HTTP/1.1 200")) {
			return fmt.Errorf("watch: %.100s", answer[:read])
		}
	}
	return nil
}

// idleTwo opens n watches over HTTP/2, a hundred to a connection.
func (s *wire) idleTwo(ctx context.Context, from uint64, n int) error {
	for opened := 0; opened < n; opened += streamsEach {
		conn, err := s.dial(ctx)
		if err != nil {
			return err
		}
		if err := s.openStreams(conn, s.target(Selection{}, from), min(streamsEach, n-opened)); err != nil {
			return err
		}
	}
	return nil
}

// openStreams sends n requests on one connection and waits for the header of each answer.
// Later data stays in the socket's buffer.
func (s *wire) openStreams(conn net.Conn, target string, n int) error {
	scheme := "http"
	if _, encrypted := conn.(*tls.Conn); encrypted {
		scheme = "https"
	}
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return err
	}
	framer := http2.NewFramer(conn, conn)
	if err := framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20}); err != nil {
		return err
	}
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	fields := [][2]string{{":method", "GET"}, {":scheme", scheme}, {":authority", "localhost"}, {":path", target}, {"accept", "application/json"}}
	if s.token != "" {
		fields = append(fields, [2]string{"authorization", "Bearer " + s.token})
	}
	for i := range n {
		block.Reset()
		for _, f := range fields {
			if err := encoder.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}); err != nil {
				return err
			}
		}
		err := framer.WriteHeaders(http2.HeadersFrameParam{StreamID: uint32(2*i + 1), BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true})
		if err != nil {
			return err
		}
	}
	return awaitHeads(framer, n)
}

// awaitHeads reads until n streams have answered.
func awaitHeads(framer *http2.Framer, n int) error {
	decoder := hpack.NewDecoder(4096, nil)
	for answered := 0; answered < n; {
		frame, err := framer.ReadFrame()
		if err != nil {
			return err
		}
		switch f := frame.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				err = framer.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			answered++
			err = checkHead(decoder, f.HeaderBlockFragment())
		case *http2.GoAwayFrame, *http2.RSTStreamFrame:
			err = fmt.Errorf("watch: %v", f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func checkHead(decoder *hpack.Decoder, block []byte) error {
	fields, err := decoder.DecodeFull(block)
	if err != nil {
		return err
	}
	if len(fields) == 0 || fields[0].Value != "200" {
		return fmt.Errorf("watch: %v", fields)
	}
	return nil
}
