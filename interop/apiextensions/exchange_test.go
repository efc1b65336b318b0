package apiextensions

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// request is sent to both servers. Its path and body may refer to what the server has said:
// $rv:NAME$ and $uid:NAME$ are the resourceVersion and the uid of the object of that name as
// the server last returned it, $rv$ is that of the last list, and $continue$ its token.
type request struct {
	method, path string
	body         string
	headers      http.Header
}

// answer is what a server has answered, with the values of a JSON body, or of each event of a
// watch.
type answer struct {
	code    int
	headers http.Header
	text    string
	values  []any
}

// ask sends a request to a server.
func (s *server) ask(ctx context.Context, r request) (*answer, error) {
	for name, value := range s.said {
		r.path, r.body = strings.ReplaceAll(r.path, "$"+name+"$", value), strings.ReplaceAll(r.body, "$"+name+"$", value)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, s.url+r.path, strings.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, r.headers)
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	a := &answer{code: resp.StatusCode, headers: resp.Header, text: string(text)}
	for decoder := json.NewDecoder(strings.NewReader(a.text)); ; {
		var value any
		if err := decoder.Decode(&value); err != nil {
			break // at the end, or because it is not JSON
		}
		a.values = append(a.values, value)
	}
	s.note(a)
	return a, nil
}

// note keeps what requests may refer to.
func (s *server) note(a *answer) {
	var of struct {
		Metadata struct{ Name, UID, ResourceVersion, Continue string }
	}
	if a.code >= http.StatusMultipleChoices || json.Unmarshal([]byte(a.text), &of) != nil {
		return
	}
	switch m := of.Metadata; {
	case m.Name != "":
		s.said["rv:"+m.Name], s.said["uid:"+m.Name] = m.ResourceVersion, m.UID
	case m.ResourceVersion != "":
		s.said["rv"], s.said["continue"] = m.ResourceVersion, m.Continue
	}
}

// pair is both servers.
type pair struct {
	original, ours *server
	// without names a field whose values are not compared, "" for none.
	without string
}

func newPair(t *testing.T) *pair {
	t.Helper()
	return &pair{original: newOriginal(t), ours: newOurs(t)}
}

// ask sends a request to both, at once, and returns what is to be compared of their answers.
func (p *pair) ask(t *testing.T, r request) (original, ours summary) {
	t.Helper()
	var of [2]*answer
	var errs [2]error
	var both sync.WaitGroup
	for i, s := range []*server{p.original, p.ours} {
		both.Go(func() { of[i], errs[i] = s.ask(t.Context(), r) })
	}
	both.Wait()
	require.NoError(t, errors.Join(errs[:]...), "%s %s %s", r.method, r.path, r.body)
	for _, a := range of {
		for _, value := range a.values {
			drop(value, p.without)
		}
	}
	dropLostTimes(of[0], of[1])
	return compare(of[0]), compare(of[1])
}
