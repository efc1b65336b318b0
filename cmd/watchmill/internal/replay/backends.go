package replay

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/watchmill/watchmill/cmd/watchmill/internal/objectfile"
	"github.com/watchmill/watchmill/store"
	"github.com/watchmill/watchmill/store/backend"
	"github.com/watchmill/watchmill/store/backend/bolt"
)

// Opener opens storage for objects of a schema at a place: the part of --backend after
// the colon, such as FILE in "bolt:FILE".
type Opener func(place string, schema store.Schema) (backend.Backend, error)

// Backends are the kinds of storage of a program other than memory, by name.
type Backends map[string]Opener

// Builtin returns the kinds of storage in the main module. Others are in modules with
// programs of their own, so that only these have their dependencies.
func Builtin() Backends { return Backends{"bolt": openBolt} }

// elsewhere names the programs that have other kinds of storage.
var elsewhere = map[string]string{
	"etcd": "is in a program of its own: use watchmill-etcd replay, which cmd/watchmill/watchmill-etcd builds",
}

// find returns a function that opens the storage that --backend names; nil for memory.
func (b Backends) find(spec string) (func(store.Schema) (backend.Backend, error), error) {
	invalid := func(problem string) error {
		fix := "; give memory"
		for _, there := range slices.Sorted(maps.Keys(b)) {
			fix += ", " + there + ":WHERE"
		}
		return &OptionError{Option: "--backend", Problem: "is " + spec + ", but " + problem + fix}
	}
	name, place, _ := strings.Cut(spec, ":")
	open := b[name]
	switch {
	case spec == "memory":
		return nil, nil
	case name == "memory":
		return nil, invalid("memory has no place")
	case open == nil && elsewhere[name] != "":
		return nil, invalid(name + " " + elsewhere[name])
	case open == nil:
		return nil, invalid("there is no storage of that name")
	case place == "":
		return nil, invalid("it does not say where")
	}
	return func(schema store.Schema) (backend.Backend, error) {
		storage, err := open(place, schema)
		if err != nil {
			return nil, fmt.Errorf("--backend is %s: %w", spec, err)
		}
		return storage, nil
	}, nil
}

// boltType is the name of the objects' type in a file.
const boltType = "replay"

// boltStorage is the backend of the only type in a file. Closing it closes the file, which ends the type.
type boltStorage struct {
	*bolt.Backend
	file *bolt.File
}

func (s boltStorage) Close() error { return s.file.Close() }

func openBolt(path string, schema store.Schema) (backend.Backend, error) {
	file, err := bolt.Open(path, bolt.Options{})
	if err != nil {
		return nil, objectfile.Usable(err)
	}
	b, err := bolt.New(file, boltType, bolt.Config{Schema: schema})
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return boltStorage{b, file}, nil
}
