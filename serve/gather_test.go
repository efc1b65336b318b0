package serve_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/serve"
)

// Over HTTP/2, too, events arrive as they are, whatever their size, alone and many together,
// and their sizes are those that metrics are told.
func TestGather_EventsOfAnySize(t *testing.T) {
	sizes := []int{1, 900, 1100, 15_000, 16_100, 16_383, 16_384, 16_385, 32_768, 100_000, 250_000}
	told := newRecorder()
	inBubbleOver(t, "HTTP/2.0", func(t *testing.T, s *server) {
		for i, size := range sizes {
			s.createLarge(fmt.Sprintf("w%02d", i), size)
		}
		resp := s.send(t.Context(), "GET", inDefault+"?watch=1&timeoutSeconds=60", "")
		read, ended := lines(resp.Body, 100)
		received := 0
		expect := func(name string, size int) {
			line := <-read
			received += len(line)
			require.True(t, strings.HasPrefix(line, `{"type":"ADDED"`) && strings.HasSuffix(line, "}\n"), name)
			require.Contains(t, line, `"name":"`+name+`"`)
			require.Contains(t, line, `"`+strings.Repeat("x", size)+`"`)
		}
		for i, size := range sizes {
			expect(fmt.Sprintf("w%02d", i), size)
		}
		for i, size := range sizes {
			s.createLarge(fmt.Sprintf("x%02d", i), size)
			expect(fmt.Sprintf("x%02d", i), size)
		}
		require.NoError(t, resp.Body.Close())
		for range read {
			t.Error("there is no other event")
		}
		require.Error(t, *ended)
		told.mu.Lock()
		defer told.mu.Unlock()
		sum := 0
		for _, size := range told.sizes {
			sum += size
		}
		require.Len(t, told.sizes, 2*len(sizes))
		require.Equal(t, received, sum)
	}, func(c *serve.Config) { c.Metrics = told })
}
