package remote

import (
	"errors"
	"fmt"
	"net/http"
)

// safeRedirects returns a client that follows the same redirects as client, but gives the token only
// to the server itself, and fails where a redirect turns a write into a read, as most do in HTTP: the
// answer would look like that of the write.
func safeRedirects(client *http.Client) *http.Client {
	c, follow := *client, client.CheckRedirect
	if follow == nil {
		follow = followDefault
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

// followDefault follows redirects as a client without CheckRedirect does.
func followDefault(_ *http.Request, before []*http.Request) error {
	if len(before) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}
