package main

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

const mainModule = "github.com/watchmill/watchmill"

// published are the folders of the modules that users import or install. The others test and measure
// them.
var published = []string{
	"",
	"store/backend/etcd",
	"serve/lease",
	"serve/corekinds",
	"registry/crd/cel",
	"cmd/watchmill/watchmill-etcd",
}

// tags returns the tags of a release, by which the go command finds its modules.
func tags(version string) (names []string) {
	for _, folder := range published {
		names = append(names, path.Join(folder, version))
	}
	return names
}

// releaseModule has the go.mod of that name require the version of each of our modules that it requires. It
// refuses that a published module requires one which is not.
func releaseModule(name string, text []byte, version string) ([]byte, error) {
	file, err := modfile.Parse(name, text, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range slices.Clone(file.Require) {
		switch {
		case isPublished(r.Mod.Path):
			if err := file.AddRequire(r.Mod.Path, version); err != nil {
				return nil, err
			}
		case isOurs(r.Mod.Path) && isPublished(file.Module.Mod.Path):
			return nil, fmt.Errorf("%s: a published module requires %s, which is not published", name, r.Mod.Path)
		}
	}
	return file.Format()
}

// isPublished reports whether users can import or install what the module has.
func isPublished(module string) bool {
	return slices.ContainsFunc(published, func(folder string) bool { return path.Join(mainModule, folder) == module })
}

// isOurs reports whether the module is of this repository.
func isOurs(module string) bool { return strings.HasPrefix(module+"/", mainModule+"/") }
