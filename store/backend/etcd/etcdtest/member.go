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

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
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

	// port is where it listens for other members, peer the URL that they know.
	port, peer string

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
	client := freeAddress(t, "")
	port := freeAddress(t, client)
	m := newMember(t, "default", Member{Endpoint: client, port: port, peer: "http://" + port}, append([]string{
		"--initial-cluster=default=http://" + port,
	}, more...))
	m.Restart()
	t.Cleanup(m.Kill)
	return m
}

// newMember returns a member without data that is not started, with the addresses of at.
func newMember(t testing.TB, name string, at Member, more []string) *Member {
	t.Helper()
	dir := t.TempDir()
	at.t, at.log = t, filepath.Join(dir, "etcd.log")
	at.arguments = append([]string{
		"--name=" + name, "--data-dir=" + filepath.Join(dir, "data"), "--log-outputs=stderr", "--log-level=error",
		"--heartbeat-interval=" + strconv.Itoa(tickMillis), "--election-timeout=" + strconv.Itoa(electionMillis),
		"--listen-client-urls=http://" + at.Endpoint, "--advertise-client-urls=http://" + at.Endpoint,
		"--listen-peer-urls=http://" + at.port, "--initial-advertise-peer-urls=" + at.peer,
	}, more...)
	return &at
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
	m.check(m.start())
}

// check fails the test with the member's log if it did not start.
func (m *Member) check(err error) {
	m.t.Helper()
	if err != nil {
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

// ready waits until the member serves, by a read that needs a leader. A learner refuses that.
func (m *Member) ready() error {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{m.Endpoint}, Logger: zap.NewNop(), BackoffWaitBetween: 10 * time.Millisecond})
	if err != nil {
		return err
	}
	defer client.Close()
	return within(startPatience, func(ctx context.Context) error {
		_, err := client.Get(ctx, "ready")
		if err == nil || rpctypes.ErrorDesc(err) == rpctypes.ErrorDesc(rpctypes.ErrGRPCNotSupportedForLearner) {
			return nil
		}
		select {
		case ended := <-m.ended:
			return fmt.Errorf("it ended: %v", ended)
		default:
			return err
		}
	})
}

// within makes attempts until one succeeds, or it has taken too long.
func within(limit time.Duration, attempt func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for {
		err := attempt(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %w", limit, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
