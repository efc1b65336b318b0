package etcd_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/backendtest"
	"github.com/watchmill/watchmill/store/backend/etcd"
	"github.com/watchmill/watchmill/store/backend/etcd/etcdtest"
)

// stretches is how many times the two sides of a comparison take turns, so that a
// disturbance affects both. The one that begins changes.
const stretches = 20

// Conditional updates of 256 bytes, by a number of writers with a key each: through this
// package, with the bare client or one of its own, and by the bare client with the same requests
// and values. The ratio is that of the rates; "more-allocs/op" is how many allocations this
// package adds.
func BenchmarkPut(b *testing.B) {
	server := etcdtest.Start(b, nil)
	client := etcdtest.Client(b, server.Endpoint)
	given, own := etcd.Config{Client: client}, etcd.Config{Endpoints: []string{server.Endpoint}}
	for _, c := range []struct {
		name    string
		cfg     etcd.Config
		writers int
	}{{"1", given, 1}, {"64", given, 64}, {"512", given, 512}, {"64-own", own, 64}} {
		b.Run(c.name, func(b *testing.B) { benchmarkPut(b, c.cfg, client, c.writers) })
	}
}

func benchmarkPut(b *testing.B, cfg etcd.Config, client *clientv3.Client, writers int) {
	cfg.Prefix, cfg.Schema = newPrefix(), backendtest.Schema()
	ours, err := etcd.New(b.Context(), cfg)
	require.NoError(b, err)
	defer func() { require.NoError(b, ours.Close()) }()
	through, bare := &side{}, &side{}
	for w := range writers {
		through.writers = append(through.writers, throughBackend(ours, fmt.Sprint("k", w)))
		bare.writers = append(bare.writers, byClient(client, newPrefix()+"/k"))
	}
	each := max(b.N/stretches, writers)
	first, second := through, bare
	for range stretches {
		require.NoError(b, first.write(b.Context(), each))
		require.NoError(b, second.write(b.Context(), each))
		first, second = second, first
	}
	writes := float64(stretches * each)
	b.ReportMetric(bare.took.Seconds()/through.took.Seconds(), "ratio")
	b.ReportMetric(writes/through.took.Seconds(), "writes/s")
	b.ReportMetric((float64(through.allocs)-float64(bare.allocs))/writes, "more-allocs/op")
}

// side is one side of a comparison.
type side struct {
	writers []func(context.Context) error
	took    time.Duration
	allocs  uint64
}

// write makes n writes by all writers at the same time.
func (s *side) write(ctx context.Context, n int) error {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	var left atomic.Int64
	left.Store(int64(n))
	failed := make([]error, len(s.writers))
	var all sync.WaitGroup
	for i, write := range s.writers {
		all.Go(func() {
			for left.Add(-1) >= 0 && failed[i] == nil {
				failed[i] = write(ctx)
			}
		})
	}
	all.Wait()
	s.took += time.Since(begun)
	runtime.ReadMemStats(&after)
	s.allocs += after.Mallocs - before.Mallocs
	return errors.Join(failed...)
}

var text256 = strings.Repeat("x", 220)

// throughBackend returns a function that updates an object.
func throughBackend(b *etcd.Backend, key string) func(context.Context) error {
	var prev *store.Object
	return func(ctx context.Context) (err error) {
		prev, err = b.Put(ctx, draft(key, text256), prev, backend.PutOptions{})
		return err
	}
}

// byClient returns a function that makes the same request.
func byClient(client *clientv3.Client, key string) func(context.Context) error {
	var revision int64
	return func(ctx context.Context) error {
		data, err := json.Marshal(backendtest.Value{Key: key, Text: text256})
		if err != nil {
			return err
		}
		resp, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
			Then(clientv3.OpPut(key, string(data))).Else(clientv3.OpGet(key)).Commit()
		if err == nil && !resp.Succeeded {
			err = errors.New("another write came between")
		}
		if err == nil {
			revision = resp.Header.Revision
		}
		return err
	}
}
