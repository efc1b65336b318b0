package serve_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/serve"
)

// unreadList lists all widgets, as a user, and reads nothing of them. The list is larger than what
// is in between holds.
func (s *server) unreadList(user string) *http.Response {
	s.t.Helper()
	resp := s.send(s.t.Context(), "GET", allWidgets, "", "User", user)
	require.Equal(s.t, 200, resp.StatusCode)
	synctest.Wait()
	return resp
}

// items returns how many items a list has that is read to its end.
func items(resp *http.Response) (int, error) {
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	var list struct{ Items []json.RawMessage }
	err = json.Unmarshal(text, &list)
	return len(list.Items), err
}

// fewReads allows that many reads, and makes no answer stall within a test.
func fewReads(reads int) func(*serve.Config) {
	return func(c *serve.Config) {
		byHeader(10)(c)
		c.Limits.Reads, c.Limits.ReadsPerUser, c.Limits.WriteStall = reads, reads, time.Hour
	}
}

const largeWidgets = 50 // of 200 kB, which is more than the buffers of a client over HTTP/2

func (s *server) createLargeWidgets() {
	for i := range largeWidgets {
		s.createLarge(fmt.Sprint("w", i), 200_000)
	}
}

// Answers that are read slowly, or not at all, hold no place that others want, and are whole all the
// same.
func TestDepart_SlowReadersKeepNoOtherFromReading(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.createLargeWidgets()
		slow := s.unreadList("a")
		require.Equal(t, 429, s.get(inDefault+"/w0").code, "it may just be large")
		time.Sleep(time.Second)
		require.Equal(t, 200, s.get(inDefault+"/w0").code)
		require.Equal(t, 1, s.handler.Stats().Departing)
		require.Equal(t, 200, s.get(inDefault+"/w0").code)
		n, err := items(slow)
		require.NoError(t, err)
		require.Equal(t, largeWidgets, n)
		synctest.Wait()
		require.Zero(t, s.handler.Stats().Departing+s.handler.Stats().InFlight)
	}, fewReads(1))
}

// Their number is bounded, too. Then the one of the user with the most that has been sent longest is
// cut off.
func TestDepart_OneOfTooManyIsCutOff(t *testing.T) {
	told := &recorder{}
	inBubble(t, func(t *testing.T, s *server) {
		s.createLargeWidgets()
		patient := s.unreadList("patient")
		time.Sleep(time.Second)
		var greedy []*http.Response
		for range 5 {
			greedy = append(greedy, s.unreadList("greedy"))
			time.Sleep(time.Second)
		}
		require.Equal(t, 2, s.handler.Stats().Departing)
		n, err := items(patient)
		require.NoError(t, err)
		require.Equal(t, largeWidgets, n)
		for i, resp := range greedy {
			n, err := items(resp)
			if i < 2 {
				require.Error(t, err)
			} else {
				require.NoError(t, err)
				require.Equal(t, largeWidgets, n)
			}
		}
		synctest.Wait()
		require.Zero(t, s.handler.Stats().Departing+s.handler.Stats().InFlight)
		refused := map[serve.Limit]int{}
		told.note(func() {
			for _, m := range told.served {
				refused[m.Refused]++
			}
			told.served = nil
		})
		delete(refused, "")
		require.Equal(t, map[serve.Limit]int{serve.LimitReads: 2}, refused)
	}, fewReads(2), func(c *serve.Config) { c.Metrics = told })
}

// meanwhile is a connection on which something happens when more of an answer has been sent, just before
// its deadline is set anew.
type meanwhile struct {
	*httptest.ResponseRecorder
	do func()

	mu        sync.Mutex
	deadlines []time.Time
}

func (m *meanwhile) SetWriteDeadline(at time.Time) error {
	if do := m.do; m.Body.Len() > 0 && do != nil {
		m.do = nil
		do()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deadlines = append(m.deadlines, at)
	return nil
}

// An answer that is cut off while it is given more time does not go on.
func TestDepart_WhatIsCutOffGetsNoMoreTime(t *testing.T) {
	inBubbleOver(t, "HTTP/1.1", func(t *testing.T, s *server) {
		s.createLargeWidgets()
		var second *http.Response
		first := &meanwhile{ResponseRecorder: httptest.NewRecorder()}
		first.do = func() {
			time.Sleep(time.Second)
			second = s.unreadList("b")
			time.Sleep(time.Second)
			require.Equal(t, 200, s.get(inDefault+"/w0").code)
		}
		s.handler.ServeHTTP(first, httptest.NewRequest("GET", "http://localhost"+allWidgets, nil))
		require.NotNil(t, second)
		n, err := items(second)
		require.NoError(t, err)
		require.Equal(t, largeWidgets, n)
		last := first.deadlines[len(first.deadlines)-1]
		require.True(t, last.Before(time.Now()), last)
	}, fewReads(1))
}

// One user makes room for its own reads alone.
func TestDepart_OfOneUser(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.createLargeWidgets()
		slow := s.unreadList("a")
		time.Sleep(time.Second)
		require.Equal(t, 200, s.get(inDefault+"/w0", "User", "a").code)
		require.Equal(t, 1, s.handler.Stats().Departing)
		_, err := items(slow)
		require.NoError(t, err)
	}, fewReads(2), func(c *serve.Config) { c.Limits.ReadsPerUser = 1 })
}

// A user who has all places that one user may have gets none of the places of others, however slow they are.
func TestDepart_OthersMakeNoRoomForMoreOfOneUser(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.createLargeWidgets()
		other := s.unreadList("b")
		time.Sleep(time.Second)
		mine := s.unreadList("a") // which has just begun
		refused := s.get(inDefault+"/w0", "User", "a")
		require.Equal(t, 429, refused.code)
		require.Contains(t, refused.str("message"), "one user")
		require.Zero(t, s.handler.Stats().Departing)
		for _, slow := range []*http.Response{mine, other} {
			n, err := items(slow)
			require.NoError(t, err)
			require.Equal(t, largeWidgets, n)
		}
	}, fewReads(2), func(c *serve.Config) { c.Limits.ReadsPerUser = 1 })
}

// A shutdown waits for answers that are read slowly.
func TestDepart_AShutdownWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, s *server) {
		s.createLargeWidgets()
		slow := s.unreadList("a")
		time.Sleep(time.Second)
		require.Equal(t, 200, s.get(inDefault+"/w0").code)
		ended := make(chan error, 1)
		go func() { ended <- s.handler.Shutdown(t.Context()) }()
		time.Sleep(10 * time.Second)
		require.Empty(t, ended)
		n, err := items(slow)
		require.NoError(t, err)
		require.Equal(t, largeWidgets, n)
		require.NoError(t, <-ended)
	}, fewReads(1))
}
