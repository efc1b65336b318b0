package remote_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
)

// A failure is told by what the server has said of it, and by its code if that is nothing.
func TestStatusError_TellsWhatTheServerSaid(t *testing.T) {
	for answer, want := range map[string]string{
		`403 {"kind":"Status","code":403,"reason":"Forbidden","message":"not you"}`: "403 Forbidden: not you",
		`403 {"kind":"Status","code":403,"message":"not you"}`:                      "403: not you",
		`403 {"kind":"Status","code":403,"reason":"Forbidden"}`:                     "403 Forbidden: Forbidden",
		`503 <html>busy</html>`: "503: Service Unavailable",
		`599 `:                  "/widgets/a: 599",
		`400 Client sent an HTTP request to an HTTPS server.`: `400: Bad Request: "Client sent an HTTP request to an HTTPS server."`,
		`404 ` + strings.Repeat("x", 201):                     "404: Not Found",
		"404 one\x1b[1mtwo":                                   "404: Not Found",
		"404 \xff":                                            "404: Not Found",
	} {
		_, err := backendAt(t, frames(t, answer).URL).Get(t.Context(), "default/a")
		require.True(t, strings.HasSuffix(err.Error(), want), "%v", err)
	}
}

// A failure matches the error of storage that means the same. A code alone, as of a proxy, says
// less than a Status with a reason.
func TestStatusError_MatchesErrorsOfStorage(t *testing.T) {
	all := []error{
		store.ErrNotFound, store.ErrExists, store.ErrConflict, store.ErrExpired, store.ErrFuture, store.ErrUnsupported,
		backend.ErrTooLarge, backend.ErrDenied, backend.ErrUnavailable,
	}
	status := func(reason string) string { return `{"kind":"Status","code":1,"reason":"` + reason + `"}` }
	for answer, want := range map[string]error{
		"404 " + status("NotFound"):      store.ErrNotFound,
		"404 no":                         nil,
		"409 " + status("AlreadyExists"): store.ErrExists,
		"409 " + status("Conflict"):      store.ErrConflict,
		"409 no":                         nil,
		`409 {"kind":"Status","code":409,"reason":"Conflict","details":{"name":"a"}}`: store.ErrConflict,
		"410 " + status("Expired"):          store.ErrExpired,
		"410 " + status("Gone"):             store.ErrExpired,
		"410 " + status(""):                 store.ErrExpired,
		"410 no":                            store.ErrExpired,
		"413 no":                            backend.ErrTooLarge,
		"401 no":                            backend.ErrDenied,
		"403 no":                            backend.ErrDenied,
		"405 " + status("MethodNotAllowed"): store.ErrUnsupported,
		"405 no":                            nil,
		"429 no":                            backend.ErrUnavailable,
		"500 no":                            backend.ErrUnavailable,
		"503 no":                            backend.ErrUnavailable,
		"422 " + status("Invalid"):          nil,
	} {
		_, err := backendAt(t, frames(t, answer).URL).Get(t.Context(), "default/a")
		require.Error(t, err)
		for _, e := range all {
			if e == want {
				require.ErrorIs(t, err, e, answer)
			} else {
				require.NotErrorIs(t, err, e, answer)
			}
		}
		var owned *registry.FieldConflictError
		require.NotErrorAs(t, err, &owned, "no field has another manager")
		var invalid *registry.InvalidError
		require.NotErrorAs(t, err, &invalid, "no field is wrong")
	}
}

// A server may have types of errors that this module does not know.
func TestStatusError_OfFieldsThatAreInvalid(t *testing.T) {
	const answer = `422 {"kind":"Status","code":422,"reason":"Invalid","details":{"group":"example.com","kind":"Widget","name":"a","causes":[` +
		`{"reason":"FieldValueRequired","field":"spec.size","message":"Required value: give one"},{"reason":"FieldValueOdd","field":"spec","message":"odd"}]}}`
	_, err := backendAt(t, frames(t, answer).URL).Get(t.Context(), "default/a")
	var invalid *registry.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Equal(t, registry.Kind{Group: "example.com", Kind: "Widget"}, invalid.Kind)
	require.Len(t, invalid.Errors, 2)
	require.EqualError(t, invalid.Errors[0], "spec.size: Required value: give one")
	require.Contains(t, invalid.Error(), "odd")
}

// What is not a Status, though it is JSON, is replaced by one of the code. What the Status itself
// says of the time to come back goes before the header.
func TestStatusError_HasAStatus(t *testing.T) {
	for _, c := range []struct {
		name, body, retryAfter string
		code                   int
		want                   metav1.Status
	}{
		{"another kind", `{"kind":"Widget","code":7,"message":"hello"}`, "", 403, metav1.Status{Message: "Forbidden"}},
		{"no code", `{"kind":"Status","message":"hello"}`, "", 403, metav1.Status{Message: "Forbidden"}},
		{"gone", `gone`, "", 410, metav1.Status{Message: "Gone", Reason: metav1.StatusReasonExpired}},
		{"a header", ``, "20", 503, metav1.Status{Message: "Service Unavailable", Details: &metav1.StatusDetails{RetryAfterSeconds: 20}}},
		{"a header of no time", ``, "0", 503, metav1.Status{Message: "Service Unavailable"}},
		{"a header of the past", ``, "-1", 503, metav1.Status{Message: "Service Unavailable"}},
		{"both", `{"kind":"Status","code":503,"status":"Failure","message":"busy","details":{"retryAfterSeconds":3}}`, "20", 503, metav1.Status{Message: "busy", Details: &metav1.StatusDetails{RetryAfterSeconds: 3}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := pretend(t, func(*http.Request) (*http.Response, error) {
				answer, err := reply(c.code, strings.NewReader(c.body))
				answer.Header.Set("Retry-After", c.retryAfter)
				return answer, err
			})
			_, err := b.Get(t.Context(), "default/a")
			var status *remote.StatusError
			require.ErrorAs(t, err, &status)
			c.want.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
			c.want.Status, c.want.Code = metav1.StatusFailure, int32(c.code)
			require.Equal(t, c.want, status.Status)
		})
	}
}

// counted counts what is read of a body.
type counted struct {
	io.Reader
	n *int
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	*c.n += n
	return n, err
}

// The body of a failure is read only in part.
func TestStatusError_OfALargeBody(t *testing.T) {
	read := 0
	b := pretend(t, func(*http.Request) (*http.Response, error) {
		return reply(http.StatusServiceUnavailable, counted{io.LimitReader(spaces{}, 10<<20), &read})
	})
	_, err := b.Get(t.Context(), "default/a")
	require.ErrorIs(t, err, backend.ErrUnavailable)
	require.Less(t, read, 1<<20)
}
