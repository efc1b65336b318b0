package replay

import (
	"path"
	"strings"

	"github.com/watchmill/watchmill/engine"
	"github.com/watchmill/watchmill/store"
)

// File is the object that a trace's key names: traces are histories of files.
type File struct {
	Path, Version string
}

// dir returns the directory ("." at the top), and ext what follows the last dot
// of the name: "" if there is none, "go" for main.go, "gitignore" for .gitignore.
func (f File) dir() string { return path.Dir(f.Path) }
func (f File) ext() string { return strings.TrimPrefix(path.Ext(f.Path), ".") }

// files is the configuration of an engine of files. Selectors match on dir and
// ext.
func files() engine.Config[File] {
	return engine.Config[File]{
		Name:   "replay",
		Key:    func(f File) string { return f.Path },
		Fields: engine.Fields[File]{"dir": File.dir, "ext": File.ext},
		Equal:  func(a, b File) bool { return a == b },
	}
}

// schema is that of files.
var schema = files().Schema()

// header returns what selectors match on of the file that a key names.
func header(key string) *store.Object {
	o := schema.New()
	o.Key = key
	*schema.Pointer(o).(*File) = File{Path: key}
	schema.Describe(o)
	return o
}

// newEngine starts an engine of files.
func newEngine(opts *Options) (*engine.Engine[File], error) {
	cfg := files()
	cfg.Window.MaxEvents = opts.Window
	return engine.New(cfg)
}
