package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/watchmill/watchmill/bench"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/etcd"
	"github.com/watchmill/watchmill/store/backend/etcd/etcdtest"
)

// server is an etcd with a client.
type server struct {
	client *clientv3.Client
	opened []*etcd.Backend
}

// patience is the timeout of a run.
const patience = 5 * time.Minute

// onServer runs f on an etcd of its own.
func onServer(ctx context.Context, f func(context.Context, *server) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not done within %v", patience))
	defer cancel()
	dir, err := os.MkdirTemp("", "watchmill-bench-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	started, err := etcdtest.Run(dir, nil)
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	defer started.Close()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{started.Endpoint}, DialTimeout: patience, Logger: zap.NewNop()})
	if err != nil {
		return err
	}
	s := &server{client: client}
	return errors.Join(f(ctx, s), s.close())
}

func (s *server) close() error {
	var failed []error
	for _, b := range s.opened {
		failed = append(failed, b.Close())
	}
	return errors.Join(append(failed, s.client.Close())...)
}

// objectOf returns the object of a writer: 256 bytes of JSON.
func objectOf(writer int) bench.Object {
	return bench.Object{Name: fmt.Sprint("pod-", writer), App: padding}
}

var padding = strings.Repeat("x", 210)

// backend returns writers through watchmill's backend.
func (s *server) backend(ctx context.Context, writers int) ([]write, error) {
	cfg := engine.Config[bench.Object]{Key: bench.Object.Key}
	schema := cfg.Schema()
	b, err := etcd.New(ctx, etcd.Config{Prefix: "/ours", Client: s.client, Schema: schema})
	if err != nil {
		return nil, err
	}
	s.opened = append(s.opened, b)
	var all []write
	for w := range writers {
		object := objectOf(w)
		key := object.Key()
		var prev *store.Object
		all = append(all, func(ctx context.Context) (err error) {
			object.Seq++
			draft := schema.New()
			*schema.Pointer(draft).(*bench.Object), draft.Key = object, key
			if err := backend.Describe(&schema, draft); err != nil {
				return err
			}
			prev, err = b.Put(ctx, draft, prev, backend.PutOptions{})
			return err
		})
	}
	return all, nil
}

// bare returns writers that make the same requests with the client.
func (s *server) bare(writers int) []write {
	var all []write
	for w := range writers {
		object := objectOf(w)
		key := "/bare/" + object.Key()
		var revision int64
		all = append(all, func(ctx context.Context) error {
			object.Seq++
			data, err := json.Marshal(&object)
			if err != nil {
				return err
			}
			resp, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(key), "=", revision)).
				Then(clientv3.OpPut(key, string(data))).Else(clientv3.OpGet(key)).Commit()
			if err == nil && !resp.Succeeded {
				err = errors.New("another write came between")
			}
			if err == nil {
				revision = resp.Header.Revision
			}
			return err
		})
	}
	return all
}
