package server

import (
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/watchmill/watchmill/serve"
)

// A disk that hangs keeps the process no longer than the file of objects does.
func TestAudit_EndsWithoutTheLinesThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &auditLog{name: "audit", log: slog.New(slog.DiscardHandler), lines: make(chan []byte, maxAuditLines), stop: make(chan struct{})}
		disk := make(chan struct{})
		a.done.Go(func() {
			<-a.lines
			<-disk
		})
		for range 3 {
			a.request(t.Context(), serve.Audited{Request: &serve.Request{Verb: "get", Resource: "widgets"}, Code: 200})
		}
		synctest.Wait()
		require.EqualError(t, a.close(), fmt.Sprintf("--audit-log: writing to audit has hung for %v: its last 3 lines are lost", hangAfter))
		close(disk)
	})
}
