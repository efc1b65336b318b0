package etcdtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"go.uber.org/zap"
)

// memberVariable tells a process that it is a member.
const memberVariable = "WATCHMILL_ETCDTEST_MEMBER"

// RunMember makes the process a member of etcd if [StartMember] has started it, and
// then does not return. Call it first in TestMain:
//
//	func TestMain(m *testing.M) {
//		etcdtest.RunMember()
//		os.Exit(m.Run())
//	}
func RunMember() {
	if os.Getenv(memberVariable) == "" {
		return
	}
	etcdmain.Main(append([]string{"etcd"}, os.Args[1:]...))
	os.Exit(0)
}

// Member is an etcd in a process of its own, which keeps its data on disk as in
// production, and can be killed and started again.
type Member struct {
	// Endpoint is its address, the same after each start.
	Endpoint string

	t         testing.TB
	arguments []string
	log       string
	process   *exec.Cmd
	ended     chan error
}

// StartMember starts a member, which is the test's own program run again: its
// TestMain must call [RunMember]. It returns when the member serves, and stops it when
// the test ends. more has further flags for etcd.
func StartMember(t testing.TB, more ...string) *Member {
	t.Helper()
	dir := t.TempDir()
	client := freeAddress(t, "")
	peer := freeAddress(t, client)
	m := &Member{t: t, Endpoint: client, log: filepath.Join(dir, "etcd.log"), arguments: append([]string{
		"--name=default", "--data-dir=" + filepath.Join(dir, "data"), "--log-outputs=stderr", "--log-level=error",
		"--heartbeat-interval=" + strconv.Itoa(tickMillis), "--election-timeout=" + strconv.Itoa(electionMillis),
		"--listen-client-urls=http://" + client, "--advertise-client-urls=http://" + client,
		"--listen-peer-urls=http://" + peer, "--initial-advertise-peer-urls=http://" + peer,
		"--initial-cluster=default=http://" + peer,
	}, more...)}
	m.Restart()
	t.Cleanup(m.Kill)
	return m
}

// freeAddress returns a local address that is not in use, and is not taken. Its port is
// below those that systems give to outgoing connections by default: one of these could
// otherwise take it before the process listens, or while it is dead.
func freeAddress(t testing.TB, taken string) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(20_000))
		if address == taken {
			continue
		}
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("looking for a free port: there is none from 10000 to 29999")
	return ""
}

// Kill ends the process with SIGKILL, if it runs, and waits for its end.
func (m *Member) Kill() {
	if m.process == nil {
		return
	}
	_ = m.process.Process.Kill()
	<-m.ended
	m.process = nil
}

// Restart starts the member with the data that it had, after killing it if it runs,
// and returns when it serves.
func (m *Member) Restart() {
	m.t.Helper()
	m.Kill()
	if err := m.start(); err != nil {
		text, _ := os.ReadFile(m.log)
		m.t.Fatalf("starting a member: %v\n%s", err, text)
	}
}

func (m *Member) start() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	process := exec.Command(program, m.arguments...)
	process.Env = append(os.Environ(), memberVariable+"=1")
	process.Stdout, process.Stderr = log, log
	if err := process.Start(); err != nil {
		return err
	}
	m.process, m.ended = process, make(chan error, 1)
	ended := m.ended
	go func() { ended <- process.Wait(); close(ended) }()
	return m.ready()
}

// ready waits until the member serves, by a read that needs a leader.
func (m *Member) ready() error {
	ctx, cancel := context.WithTimeout(context.Background(), startPatience)
	defer cancel()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{m.Endpoint}, Logger: zap.NewNop(), BackoffWaitBetween: 10 * time.Millisecond})
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
		case ended := <-m.ended:
			return fmt.Errorf("it ended: %v", ended)
		case <-ctx.Done():
			return fmt.Errorf("not ready within %v: %w", startPatience, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
