package server

import (
	"fmt"
	"log/slog"
	"strings"
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

// What waits for the disk is bounded, also by the line that is added last. Each < takes six bytes of it.
func TestAudit_LinesTakeNoMoreMemoryThanTheyMay(t *testing.T) {
	a := &auditLog{lines: make(chan []byte, maxAuditLines)}
	large := &serve.Request{Verb: "get", Resource: "widgets", Name: strings.Repeat("<", 64<<10)}
	for range 100 {
		a.request(t.Context(), serve.Audited{Request: large, Code: 404})
	}
	waiting := 0
	for range len(a.lines) {
		waiting += len(<-a.lines)
	}
	require.LessOrEqual(t, waiting, maxAuditBytes)
	require.Greater(t, waiting, maxAuditBytes/2)
	require.EqualValues(t, waiting, a.bytes.Load())
	require.Positive(t, a.lost.Load())
}
