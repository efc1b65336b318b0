package prommetrics_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/serve/prommetrics"
)

// unread is an answer whose client reads nothing until let is closed.
type unread struct {
	*httptest.ResponseRecorder
	let chan struct{}
}

func (u unread) Write(text []byte) (int, error) {
	<-u.let
	return u.ResponseRecorder.Write(text)
}

// Clients that do not read the page keep no other from getting it.
func TestHandler_SlowReadersKeepNoOtherFromReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		page, err := prommetrics.Handler()
		require.NoError(t, err)
		get := func(w http.ResponseWriter) { page.ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil)) }
		let := make(chan struct{})
		var slow sync.WaitGroup
		for range 10 {
			slow.Go(func() { get(unread{httptest.NewRecorder(), let}) })
			synctest.Wait()
		}
		quick := httptest.NewRecorder()
		get(quick)
		require.Equal(t, 200, quick.Code)
		require.Contains(t, quick.Body.String(), "go_goroutines")
		require.Contains(t, quick.Header().Get("Content-Type"), "text/plain")
		close(let)
		slow.Wait()
	})
}
