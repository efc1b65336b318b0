package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
)

// requests is an [Endpoint] as a [Server]: its writes are requests, too.
type requests struct {
	at     *Endpoint
	client *http.Client

	mu        sync.Mutex
	revisions map[string]string // of the objects that were written, by name
}

// overRequests returns a function that starts a contender's server of a custom kind.
func overRequests(c Contender) func(context.Context) (*wire, error) {
	return func(ctx context.Context) (*wire, error) {
		at, err := c.Custom(ctx)
		if err != nil {
			return nil, err
		}
		s, err := dialEndpoint(at)
		if err != nil {
			return nil, errors.Join(err, at.Stop())
		}
		return s, nil
	}
}

// dialEndpoint returns a running server as a wire.
func dialEndpoint(at *Endpoint) (*wire, error) {
	trust, err := at.trust()
	if err != nil {
		return nil, err
	}
	transport := uncompressed(trust.Clone())
	transport.ForceAttemptHTTP2 = true
	client := &http.Client{Transport: transport}
	return &wire{
		Server: &requests{at: at, client: client, revisions: map[string]string{}},
		addr:   at.Addr, trust: trust, token: at.Token, client: client,
	}, nil
}

const (
	podVersion = "/apis/bench.watchmill/v1"
	podPath    = podVersion + "/pods"
	podsIn     = podVersion + "/namespaces/" + Namespace + "/pods"
)

// Write creates the object, or replaces the state that the last write left.
func (s *requests) Write(ctx context.Context, o Object) (uint64, error) {
	p := newPod(o)
	p.TypeMeta.Kind, p.TypeMeta.APIVersion = "Pod", "bench.watchmill/v1"
	s.mu.Lock()
	p.ResourceVersion = s.revisions[o.Name]
	s.mu.Unlock()
	method, path := http.MethodPost, podsIn
	if p.ResourceVersion != "" {
		method, path = http.MethodPut, podsIn+"/"+o.Name
	}
	body, err := json.Marshal(&p)
	if err != nil {
		return 0, err
	}
	var stored pod
	if err := s.send(ctx, method, path, body, &stored); err != nil {
		return 0, err
	}
	s.mu.Lock()
	s.revisions[o.Name] = stored.ResourceVersion
	s.mu.Unlock()
	return strconv.ParseUint(stored.ResourceVersion, 10, 64)
}

// WaitFor lists one object of a state that is not older.
func (s *requests) WaitFor(ctx context.Context, rev uint64) error {
	path := podPath + "?limit=1&resourceVersionMatch=NotOlderThan&resourceVersion=" + strconv.FormatUint(rev, 10)
	return s.send(ctx, http.MethodGet, path, nil, nil)
}

// send sends a request, and decodes its answer unless that is nil.
func (s *requests) send(ctx context.Context, method, path string, body []byte, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, "https://"+s.at.Addr+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	authorize(req, s.at.Token)
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, text)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

// authorize adds the bearer token to a request, if there is one.
func authorize(req *http.Request, token string) {
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
}

// Handler returns nil: the server listens by itself.
func (s *requests) Handler() http.Handler { return nil }
func (s *requests) Path() string          { return podPath }

func (s *requests) Close() error { return s.at.Stop() }
