package serve

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/watchmill/watchmill/serve/internal/status"
)

// fail answers with a Status.
func (c *call) fail(err error) {
	if c.w.Code() != 0 {
		return // too late: the answer has begun
	}
	c.failure = err
	c.leaveUnread()
	c.answerStatus(status.Of(err, c.req.subject()))
}

// answerStatus answers with a Status.
func (c *call) answerStatus(st *metav1.Status) {
	c.depart()
	status.Write(c.w, st)
}

// logFault logs the error of a request that is a failure of the server or of its storage.
func (c *call) logFault(err error) {
	code := status.ErrorOf(err, c.req.subject()).ErrStatus.Code
	if code == http.StatusGatewayTimeout && c.hung(err) || code >= 500 && code != http.StatusGatewayTimeout {
		c.faults.log(c.log, "a request failed", "verb", c.req.Verb, "path", c.req.Path, "code", code, "error", err)
	}
}

// hung reports whether a request has had all of the time that the server gives it, while its client
// has waited, as when a disk does not answer.
func (c *call) hung(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && c.r.Context().Err() == nil && !c.req.query.Has("timeout")
}

// failurePause is the shortest time between two lines about failures: storage that fails, fails
// for each request.
const failurePause = 10 * time.Second

// failures logs failures that come in large numbers: one now and then, with how many others
// there were.
type failures struct {
	mu      sync.Mutex
	next    time.Time // when there is a line again
	skipped int
}

// log logs a failure, or counts it if there was another one a moment ago.
func (f *failures) log(to *slog.Logger, what string, args ...any) {
	skipped, now := f.take()
	if !now {
		return
	}
	if skipped > 0 {
		args = append(args, "others", skipped)
	}
	to.Error(what, args...)
}

// take reports whether a failure is to be logged now, and how many were not since the last one.
func (f *failures) take() (skipped int, now bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := time.Now()
	if at.Before(f.next) {
		f.skipped++
		return 0, false
	}
	f.next = at.Add(failurePause)
	skipped, f.skipped = f.skipped, 0
	return skipped, true
}
