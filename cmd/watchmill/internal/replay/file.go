package replay

import (
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/fields"

	"github.com/watchmill/watchmill/engine"
)

// File is the object that a trace's key names: traces are histories of files.
type File struct {
	Path, Version string
}

// fields returns what selectors match on: dir, the directory ("." at the top),
// and ext, what follows the last dot of the name ("" if there is none, "go" for
// main.go, "gitignore" for .gitignore).
func (f File) fields() fields.Set {
	return fields.Set{"dir": path.Dir(f.Path), "ext": strings.TrimPrefix(path.Ext(f.Path), ".")}
}

// newEngine starts an engine of files.
func newEngine(opts *Options) (*engine.Engine[File], error) {
	return engine.New(engine.Config[File]{
		Name:   "replay",
		Key:    func(f File) string { return f.Path },
		Fields: File.fields,
		Equal:  func(a, b File) bool { return a == b },
		Window: engine.Window{MaxEvents: opts.Window},
	})
}
