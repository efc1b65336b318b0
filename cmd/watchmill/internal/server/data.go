package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/objectfile"
	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/registry"
	"github.com/watchmill/watchmill/remote"
	"github.com/watchmill/watchmill/serve"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

// Opener opens storage for the objects of a kind at a place: the part of --data after the
// colon, such as FILE in "bolt:FILE". kind is the kind's plural with its group, such as
// "widgets.example.com". ctx bounds the call. onError logs what fails no call, such as that a member of a cluster
// cannot be reached.
type Opener func(ctx context.Context, place, kind string, schema store.Schema, onError func(error)) (backend.Backend, error)

// Storages are the kinds of storage of a program besides memory and bolt, by name.
type Storages map[string]Opener

// elsewhere names the programs that have other kinds of storage: their dependencies are theirs
// alone.
var elsewhere = map[string]string{
	"etcd": "use watchmill-etcd serve, which cmd/watchmill/watchmill-etcd builds: this program has no etcd",
}

// object is the type of the objects of all kinds.
type object = unstructured.Unstructured

// data is the storage of the objects of all kinds, whose engines run on one host.
type data struct {
	log    *slog.Logger
	host   *engine.Host
	file   *bolt.File     // nil in memory
	made   string         // the file's path, if it is new and may be removed again
	origin *remote.Config // nil if the server is not a replica
	broken atomic.Uint64  // times that a watch of origin has failed
	// garbageCollected: a garbage collector runs beside the server.
	garbageCollected bool
	// admit are those of all kinds.
	admit []registry.Admitter
	// opener opens the storage of a kind at place; nil for the above.
	opener        Opener
	scheme, place string
	// failures has the storage of each kind that can say that it has failed for good.
	failures failures
	// kinds are the kinds that close closes.
	kinds []*openKind
}

// openData opens the storage that --data or --upstream names. Its engines run on the host, and the log
// gets its problems.
func openData(opts *Options, host *engine.Host, log *slog.Logger) (*data, error) {
	d, where := &data{log: log, host: host, garbageCollected: opts.GarbageCollector}, opts.Data
	name, place, _ := strings.Cut(where, ":")
	switch {
	case opts.Upstream != "":
		origin, err := opts.origin(log)
		if err != nil {
			return nil, err
		}
		origin.OnError = func(err error) {
			d.broken.Add(1)
			log.Warn("the upstream server cannot be reached, or has ended a watch, which is resumed later", "error", err)
		}
		d.origin = &origin
	case where == "memory":
	case name == "bolt" && place != "":
		if err := d.openFile(place); err != nil {
			return nil, err
		}
	case opts.Storages[name] != nil && place != "":
		d.opener, d.scheme, d.place = opts.Storages[name], name, place
	default:
		return nil, opts.noStorage(name)
	}
	return d, nil
}

// openFile opens the file of objects, and makes it if it is not there.
func (d *data) openFile(place string) (err error) {
	_, missing := os.Lstat(place)
	if missing == nil {
		d.log.Info("opening the file of objects, which checks all of it", "file", place)
	}
	failed := func(err error) { d.log.Error("the file of objects has a failure", "error", err) }
	if d.file, err = bolt.Open(place, bolt.Options{OnError: failed}); err != nil {
		return fmt.Errorf("--data: %w", objectfile.Usable(err))
	}
	info, err := d.file.Info()
	if err != nil {
		return errors.Join(err, d.file.Close())
	}
	for _, warning := range info.Warnings {
		d.log.Warn("the file of objects has a defect, which has no consequence", "file", place, "defect", warning)
	}
	if errors.Is(missing, fs.ErrNotExist) && len(info.Types) == 0 { // else another program has made and used it meanwhile
		d.made = place
	}
	return nil
}

// checks are the conditions of the server's health that the storage adds. After a failure the file
// must be opened again, so the process has to be restarted.
func (d *data) checks() []serve.Check {
	switch {
	case d.file != nil:
		return []serve.Check{{Name: "file", Live: true, Why: d.file.Failure}}
	case d.opener != nil:
		return []serve.Check{{Name: d.scheme, Live: true, Why: d.failures.failure}}
	}
	return nil
}

// collectors are the metrics of the storage. The reflector of a kind does not count what a watch of the upstream
// server survives.
func (d *data) collectors() []prometheus.Collector {
	if d.origin == nil {
		return nil
	}
	return []prometheus.Collector{prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "watchmill_upstream_errors_total", Help: "Errors after which a watch of the upstream server was begun again, or is to be.",
	}, func() float64 { return float64(d.broken.Load()) })}
}

// keep makes close leave a new file where it is.
func (d *data) keep() { d.made = "" }

// noStorage is the error of --data that names no storage of this program.
func (o *Options) noStorage(name string) error {
	problem := fmt.Sprintf("is %q; give memory", o.Data)
	for _, there := range append(slices.Sorted(maps.Keys(o.Storages)), "bolt") {
		problem += ", " + there + ":WHERE"
	}
	if where := elsewhere[name]; where != "" && o.Storages[name] == nil {
		problem = fmt.Sprintf("is %q; %s", o.Data, where)
	}
	return &engine.ConfigError{Field: "--data", Problem: problem}
}

// close closes everything, each part before those that it uses. Before that it removes a new file
// that is not to stay: another program that waits for it finds it gone when it gets the lock, and
// makes one of its own.
func (d *data) close() error {
	if d.made != "" {
		_ = os.Remove(d.made) // else it stays, empty
	}
	var errs []error
	for _, k := range d.kinds {
		errs = append(errs, k.close())
	}
	if d.file != nil {
		errs = append(errs, d.file.Close())
	}
	return errors.Join(errs...)
}
