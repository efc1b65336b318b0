package remote

import (
	"errors"
	"fmt"
	"net/http"
)

// careful returns a client that follows the same redirects as client, but gives the token only to
// the server itself, and keeps a write a write: after most redirects HTTP reads in its place, and
// the answer would look like that of the write.
func careful(client *http.Client) *http.Client {
	c, follow := *client, client.CheckRedirect
	if follow == nil {
		follow = followTen
	}
	c.CheckRedirect = func(next *http.Request, before []*http.Request) error {
		first := before[0]
		if next.Method != first.Method {
			return fmt.Errorf("the server redirects a %s to %s, where it would be a %s: give the URL there", first.Method, next.URL.Host, next.Method)
		}
		if next.URL.Host != first.URL.Host || next.URL.Scheme != first.URL.Scheme && next.URL.Scheme != "https" {
			next.Header.Del("Authorization")
		}
		return follow(next, before)
	}
	return &c
}

// followTen is what clients do that do not say which redirects they follow.
func followTen(_ *http.Request, before []*http.Request) error {
	if len(before) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}
