package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/inspect"
)

// shared is what is written while it is read.
type shared struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func TestInspector_ShowsTheHostThatARunIsOn(t *testing.T) {
	var stderr shared
	page, err := (&simRunCommand{Inspect: "127.0.0.1:0"}).inspector(&terminal{stderr: &stderr})
	require.NoError(t, err)
	defer page.close()
	url := regexp.MustCompile(`http://\S+`).FindString(stderr.text.String())
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	state := func() (s inspect.State) {
		answer, err := client.Get(url + "state")
		require.NoError(t, err)
		defer answer.Body.Close()
		require.NoError(t, json.NewDecoder(answer.Body).Decode(&s))
		return s
	}
	require.Empty(t, state().Engines, "the run has not begun")
	host, err := engine.NewHost(engine.HostConfig{})
	require.NoError(t, err)
	topic := engine.NewTopicWith[int](engine.TopicOptions{Host: host, Name: "run"})
	page.show(host)
	require.Equal(t, "run", state().Engines[0].Name)
	require.NoError(t, topic.Close())
	require.NoError(t, host.Close())
}

func TestSimRunInspect(t *testing.T) {
	out, errs, status := command(t.Context(), "sim", "run", "--inspect", "127.0.0.1:0", written(t, quick))
	require.Zero(t, status, out+errs)
	require.Regexp(t, `^inspect the run at http://127\.0\.0\.1:\d+/debug/watchmill/\n$`, errs)
	_, errs, status = command(t.Context(), "sim", "run", "--inspect", "0.0.0.0:0", written(t, quick))
	require.NotZero(t, status)
	require.Contains(t, errs, "is not of loopback; give one such as 127.0.0.1:6061")
}
