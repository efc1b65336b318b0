package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/draft"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

// defaultSnapshotEvery is the time between two snapshots, and minSnapshotEvery the shortest.
const (
	defaultSnapshotEvery = time.Hour
	minSnapshotEvery     = time.Second
)

// snapshots writes snapshots of the file of objects while the server writes to that; nil writes
// none.
type snapshots struct {
	of      *bolt.File
	to      string
	every   time.Duration
	log     *slog.Logger
	written atomic.Int64 // when the last one was, in seconds since 1970; zero before
}

// mayWriteSnapshots returns an error if --snapshot or --snapshot-every cannot be.
func (o *Options) mayWriteSnapshots() error {
	place, inFile := strings.CutPrefix(o.Data, "bolt:")
	switch {
	case o.Snapshot == "" && o.SnapshotEvery != 0:
		return &engine.ConfigError{Field: "--snapshot-every", Problem: "is for --snapshot, which is missing; give both or neither"}
	case o.Snapshot == "":
		return nil
	case !inFile:
		return &engine.ConfigError{Field: "--snapshot", Problem: fmt.Sprintf("is for objects in a file, and --data is %s; give --data bolt:FILE", o.Data)}
	case o.SnapshotEvery != 0 && o.SnapshotEvery < minSnapshotEvery:
		return &engine.ConfigError{Field: "--snapshot-every", Problem: fmt.Sprintf("is %v; give %v or more", o.SnapshotEvery, minSnapshotEvery)}
	case draft.SameFile(o.Snapshot, place):
		return &engine.ConfigError{Field: "--snapshot", Problem: "is the file of --data; give another one"}
	case o.Kubeconfig != "" && draft.SameFile(o.Snapshot, o.Kubeconfig):
		return &engine.ConfigError{Field: "--snapshot", Problem: "is the file of --kubeconfig; give another one"}
	}
	return unwritten("--snapshot", draft.Check(o.Snapshot))
}

// snapshots returns what writes the snapshots that --snapshot asks for. It refuses to replace one
// that the file of objects does not continue: a file that was lost, and is new, would take its
// backup with it.
func (o *Options) snapshots(of *bolt.File, log *slog.Logger) (*snapshots, error) {
	if o.Snapshot == "" {
		return nil, nil
	}
	if err := mayReplace(o.Snapshot, of); err != nil {
		return nil, &engine.ConfigError{Field: "--snapshot", Problem: fmt.Sprintf("is %s, which exists and %v: move it away, or give another file", o.Snapshot, err)}
	}
	if err := draft.Clean(o.Snapshot); err != nil {
		log.Warn("cannot remove the incomplete snapshot of a process that was killed", "error", err)
	}
	return &snapshots{of: of, to: o.Snapshot, every: cmp.Or(o.SnapshotEvery, defaultSnapshotEvery), log: log}, nil
}

// mayReplace returns an error unless a file is not there, or is an earlier snapshot of the file of
// objects.
func mayReplace(name string, of *bolt.File) error {
	if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	there, err := bolt.Open(name, bolt.Options{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("is not a snapshot that can be read (%w)", err)
	}
	before, err := there.Info()
	if err = errors.Join(err, there.Close()); err != nil {
		return err
	}
	now, err := of.Info()
	switch {
	case err != nil:
		return err
	case before.StoreID != now.StoreID:
		return fmt.Errorf("is of %s, while the file of --data is %s", before.StoreID, now.StoreID)
	case before.Timeline > now.Timeline:
		return fmt.Errorf("is on timeline %d, while the file of --data is on %d", before.Timeline, now.Timeline)
	case before.Timeline < now.Timeline: // of an ancestor or of a file beside that, which a file does not know
		return nil
	case before.Branch != now.Branch:
		return errors.New("is of another file that was restored, not of the one of --data")
	}
	for kind, at := range before.Types {
		if mine := now.Types[kind].Revision; mine < at.Revision {
			return fmt.Errorf("has %s at revision %d, while the file of --data is at %d", kind, at.Revision, mine)
		}
	}
	return nil
}

// start writes a snapshot, and then another one at each turn, until stop is called.
func (s *snapshots) start(ctx context.Context) (stop func()) {
	if s == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		turn := time.NewTicker(s.every)
		defer turn.Stop()
		for ctx.Err() == nil {
			if err := s.write(ctx); err != nil && ctx.Err() == nil {
				s.log.Error("the snapshot was not written", "file", s.to, "error", err)
			}
			select {
			case <-turn.C:
			case <-ctx.Done():
			}
		}
	})
	return func() {
		cancel()
		if !endsSoon(&running) {
			s.log.Error("writing a snapshot has hung, and is given up", "file", s.to)
		}
	}
}

// write writes one snapshot. After an error the file has the one before.
func (s *snapshots) write(ctx context.Context) error {
	began := time.Now()
	d, err := draft.NewFile(s.to, 0o600)
	if err != nil {
		return err
	}
	defer d.Discard()
	m, err := s.of.Snapshot(ctx, d)
	if err != nil {
		return err
	}
	if err := d.Publish(); err != nil {
		return err
	}
	s.written.Store(began.Unix())
	s.log.Info("wrote a snapshot", "file", s.to, "bytes", m.Bytes, "took", time.Since(began).Round(time.Millisecond))
	return nil
}

// collectors are the metrics of the snapshots.
func (s *snapshots) collectors() []prometheus.Collector {
	if s == nil {
		return nil
	}
	return []prometheus.Collector{prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "watchmill_snapshot_timestamp_seconds", Help: "When the last complete snapshot was begun; zero if there is none.",
	}, func() float64 { return float64(s.written.Load()) })}
}
