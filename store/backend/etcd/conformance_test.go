package etcd_test

import (
	"context"
	"encoding/json"
	"fmt"
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

// prefixes numbers the places in an etcd that tests share.
var prefixes atomic.Int64

func newPrefix() string { return fmt.Sprintf("/test/%d", prefixes.Add(1)) }

// The suite's waits are real time here. etcd takes whole seconds, is up to one late,
// and may be slow to say so on a machine that is busy.
const (
	ttlSlack = 2 * time.Second
	mostDown = 6 * time.Second // longer than anything in the suite takes to expire
)

func wait(d time.Duration) { <-time.After(d) }

// conform runs the suite on an etcd, each check below a prefix of its own.
func conform(t *testing.T, endpoint string) {
	raw := etcdtest.Client(t, endpoint)
	backendtest.Run(t, func(t testing.TB, schema store.Schema) backendtest.Harness {
		prefix := newPrefix()
		opened := func() backend.Backend {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			b, err := open(ctx, etcd.Config{Prefix: prefix, Schema: schema, Endpoints: []string{endpoint}})
			require.NoError(t, err)
			return b
		}
		first := opened()
		return backendtest.Harness{
			Backend: first, Another: opened, Pass: wait, TTLSlack: ttlSlack,
			Reopen: func(down time.Duration) backend.Backend {
				require.NoError(t, first.Close())
				wait(min(down, mostDown))
				first = opened()
				return first
			},
			Transact: func(put []backendtest.Value, remove []string) store.Revision {
				return transact(t, raw, prefix, put, remove)
			},
		}
	})
}

// transact writes and removes at one revision, as a program without this package.
func transact(t testing.TB, raw *clientv3.Client, prefix string, put []backendtest.Value, remove []string) store.Revision {
	t.Helper()
	var ops []clientv3.Op
	for _, v := range put {
		text, err := json.Marshal(v)
		require.NoError(t, err)
		ops = append(ops, clientv3.OpPut(prefix+"/"+v.Key, string(text)))
	}
	for _, key := range remove {
		ops = append(ops, clientv3.OpDelete(prefix+"/"+key))
	}
	resp, err := raw.Txn(context.Background()).Then(ops...).Commit()
	require.NoError(t, err)
	return store.Revision(resp.Header.Revision)
}

func TestConformance_OnAnEmbeddedServer(t *testing.T) {
	t.Parallel()
	conform(t, etcdtest.Start(t, nil).Endpoint)
}

func TestConformance_OnAMember(t *testing.T) {
	t.Parallel()
	conform(t, etcdtest.StartMember(t).Endpoint)
}
