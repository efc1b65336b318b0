package kinetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/k3s-io/kine/pkg/drivers"
	"github.com/k3s-io/kine/pkg/drivers/sqlite"
	"github.com/k3s-io/kine/pkg/server"
	"github.com/sirupsen/logrus"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
)

// The environment variables that make a process kine: where it listens, and where its
// data is.
const (
	addressVariable = "WATCHMILL_KINETEST_ADDRESS"
	fileVariable    = "WATCHMILL_KINETEST_FILE"
)

// safe is kine's settings of SQLite, except for _synchronous: kine has NORMAL, with which
// a power failure can lose acknowledged writes.
const safe = "?_journal_mode=WAL&_busy_timeout=30000&_synchronous=FULL&_txlock=immediate&_stmt_cache_size=20&cache=shared"

// The settings of kine's own program, where they are not zero.
const (
	version        = "3.6.11"
	notifyInterval = 5 * time.Second
	pollInterval   = time.Second
	pollBatch      = 500
	minRetain      = 1000
	compactBatch   = 1000
	compactTimeout = 5 * time.Second
)

// RunKine makes the process kine over SQLite if [Start] has started it, and then does
// not return. Call it first in TestMain:
//
//	func TestMain(m *testing.M) {
//		kinetest.RunKine()
//		os.Exit(m.Run())
//	}
func RunKine() {
	address := os.Getenv(addressVariable)
	if address == "" {
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, address, os.Getenv(fileVariable)); err != nil {
		fmt.Fprintln(os.Stderr, "kine:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve runs kine until ctx ends. It uses kine's packages and not its program, which
// includes the drivers of all other databases.
func serve(ctx context.Context, address, file string) error {
	logrus.SetLevel(logrus.ErrorLevel)
	var running sync.WaitGroup
	_, storage, err := sqlite.New(ctx, &running, &drivers.Config{
		DataSourceName: file + safe, PollInterval: pollInterval, PollBatchSize: pollBatch,
		CompactMinRetain: minRetain, CompactBatchSize: compactBatch, CompactTimeout: compactTimeout,
	})
	if err != nil {
		return err
	}
	if err := storage.Start(ctx); err != nil {
		return err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	s := grpc.NewServer()
	server.New(storage, "http", notifyInterval, version).Register(s)
	unlink := context.AfterFunc(ctx, s.Stop)
	defer unlink()
	return s.Serve(l)
}

// Kine is kine over SQLite, in a process of its own.
type Kine struct {
	// Endpoint is its address, the same after each start.
	Endpoint string

	t       testing.TB
	file    string
	process *exec.Cmd
	ended   chan error
}

// Start starts kine over a new database, which is the test's own program run again: its
// TestMain must call [RunKine]. It returns when kine serves, and stops it when the test
// ends.
func Start(t testing.TB) *Kine {
	t.Helper()
	k := &Kine{t: t, Endpoint: freeAddress(t), file: filepath.Join(t.TempDir(), "state.db")}
	k.Restart()
	t.Cleanup(k.Kill)
	return k
}

// freeAddress returns a local address that is not in use. Its port is below those that
// systems give to outgoing connections by default, one of which could otherwise take it
// before the process listens, or while it is dead.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("looking for a free port: there is none from 10000 to 29999")
	return ""
}

// Kill ends the process with SIGKILL, if it runs, and waits for its end.
func (k *Kine) Kill() {
	if k.process == nil {
		return
	}
	_ = k.process.Process.Kill()
	<-k.ended
	k.process = nil
}

// Restart starts kine with the data that it had, after killing it if it runs, and
// returns when it serves.
func (k *Kine) Restart() {
	k.t.Helper()
	k.Kill()
	if err := k.start(); err != nil {
		k.t.Fatalf("starting kine: %v", err)
	}
}

func (k *Kine) start() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	process := exec.Command(program)
	process.Env = append(os.Environ(), addressVariable+"="+k.Endpoint, fileVariable+"="+k.file)
	process.Stdout, process.Stderr = os.Stderr, os.Stderr
	if err := process.Start(); err != nil {
		return err
	}
	k.process, k.ended = process, make(chan error, 1)
	ended := k.ended
	go func() { ended <- process.Wait(); close(ended) }()
	return k.ready()
}

// startPatience is how long kine may take to be ready.
const startPatience = time.Minute

// ready waits until kine serves.
func (k *Kine) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{k.Endpoint}, Logger: zap.NewNop(), BackoffWaitBetween: 10 * time.Millisecond})
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		_, err := client.Get(ctx, "ready")
		if err == nil {
			return nil
		}
		select {
		case ended := <-k.ended:
			return errors.Join(errors.New("it ended"), ended)
		case <-ctx.Done():
			return fmt.Errorf("not ready within %v: %w", startPatience, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
