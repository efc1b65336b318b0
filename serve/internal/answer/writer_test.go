package answer_test

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/serve/internal/answer"
)

// stall is how long the clients of these tests may take to read a part.
const stall = 30 * time.Second

// client is a connection whose client needs a time for each write, and takes nothing after its deadline.
type client struct {
	*httptest.ResponseRecorder
	needs     time.Duration
	deadline  time.Time
	deadlines int
	sizes     []int // of the writes
}

func newClient(needs time.Duration) *client {
	return &client{ResponseRecorder: httptest.NewRecorder(), needs: needs}
}

func (c *client) SetWriteDeadline(at time.Time) error {
	c.deadline = at
	c.deadlines++
	return nil
}

func (c *client) Write(p []byte) (int, error) {
	time.Sleep(c.needs)
	if !c.deadline.IsZero() && time.Now().After(c.deadline) {
		return 0, os.ErrDeadlineExceeded
	}
	c.sizes = append(c.sizes, len(p))
	return c.ResponseRecorder.Write(p)
}

// A client that reads slowly gets all of a large answer, and one that reads nothing is told from it.
func TestWriter_GivesTimeForEachPart(t *testing.T) {
	large := []byte(strings.Repeat("x", 2<<20))
	synctest.Test(t, func(t *testing.T) {
		slow := newClient(stall - time.Second)
		w := answer.New(slow, stall, false)
		n, err := w.Write(large)
		require.NoError(t, err)
		require.Equal(t, len(large), n)
		require.EqualValues(t, len(large), w.Bytes())
		require.Equal(t, string(large), slow.Body.String())
		require.Equal(t, http.StatusOK, w.Code())
		require.False(t, w.Stalled())
	})
	synctest.Test(t, func(t *testing.T) {
		w := answer.New(newClient(stall+time.Second), stall, false)
		_, err := w.Write(large)
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.True(t, w.Stalled())
		require.Zero(t, w.Bytes())
	})
}

// The time begins with the answer, however long it took to make.
func TestWriter_TimeBeginsWithTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(0)
		w := answer.New(c, stall, false)
		w.Extend()
		_, sends := w.Sending()
		require.False(t, sends)
		time.Sleep(10 * stall)
		w.WriteHeader(http.StatusNotFound)
		since, sends := w.Sending()
		require.True(t, sends)
		require.Equal(t, time.Now(), since)
		_, err := io.WriteString(w, "there is none")
		require.NoError(t, err)
		require.Equal(t, http.StatusNotFound, w.Code())
	})
}

// An answer that was cut off stays so, whatever deadline its writer sets.
func TestWriter_CutOffIsForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := answer.New(newClient(0), stall, false)
		_, err := io.WriteString(w, "a")
		require.NoError(t, err)
		require.False(t, w.WasCut())
		require.NoError(t, w.CutOff())
		w.Extend()
		_, err = io.WriteString(w, "b")
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.True(t, w.WasCut())
	})
	require.ErrorIs(t, answer.New(httptest.NewRecorder(), stall, false).CutOff(), errors.ErrUnsupported)
}

// A stream of HTTP/2 has no deadline while it has nothing to send, and gathers what it sends then.
func TestWriter_QuietStreamLastsAndGathersEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(0)
		w := answer.New(c, stall, true)
		defer w.Release()
		w.BeginWatch()
		require.False(t, w.Gathers())
		w.RemoveDeadline()
		require.True(t, w.Gathers())
		set := c.deadlines
		time.Sleep(100 * stall)
		for range 1000 {
			_, err := io.WriteString(w, strings.Repeat("e", 100))
			require.NoError(t, err)
		}
		require.NoError(t, http.NewResponseController(w).Flush())
		require.Len(t, c.sizes, 7, "100,000 bytes, 16,000 at a time")
		require.Equal(t, 100_000, c.Body.Len())
		require.EqualValues(t, 100_000, w.Bytes())
		require.Equal(t, set, c.deadlines, "one that passes would end the stream")
	})
}

// Small answers are sent as they are, and the bytes that are counted are those that are sent.
func TestPacked_LargeAnswersAlone(t *testing.T) {
	by := answer.NewCompressor(1000)
	for _, size := range []int{0, 1000, 1001, 100_000} {
		c, text := httptest.NewRecorder(), strings.Repeat("x", size)
		w := answer.New(c, stall, false)
		w.BeginPacked(http.StatusCreated, by)
		_, err := io.WriteString(w, text)
		require.NoError(t, err)
		w.End()
		w.Release()
		require.EqualValues(t, c.Body.Len(), w.Bytes())
		require.Equal(t, http.StatusCreated, c.Code)
		if size <= 1000 {
			require.Empty(t, c.Header().Get("Content-Encoding"))
			require.Equal(t, text, c.Body.String())
			continue
		}
		require.Equal(t, "gzip", c.Header().Get("Content-Encoding"))
		z, err := gzip.NewReader(c.Body)
		require.NoError(t, err)
		plain, err := io.ReadAll(z)
		require.NoError(t, err)
		require.Equal(t, text, string(plain))
	}
}
