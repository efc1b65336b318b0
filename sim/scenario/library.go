package scenario

import (
	"embed"
	"path"
	"slices"
	"strings"
)

//go:embed library/*.yaml
var library embed.FS

// Library returns the names of the shipped scenarios, sorted.
func Library() []string {
	files, _ := library.ReadDir("library") // embedded: it is there
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = strings.TrimSuffix(f.Name(), ".yaml")
	}
	slices.Sort(names)
	return names
}

// Source returns the file of a shipped scenario. Errors: an [*Error] that names
// those there are.
func Source(name string) ([]byte, error) {
	data, err := library.ReadFile(path.Join("library", name+".yaml"))
	if err != nil {
		return nil, &Error{Problem: "there is no shipped scenario " + name, Fix: "there are " + strings.Join(Library(), ", ")}
	}
	return data, nil
}

// Shipped returns the shipped scenario of that name. Errors: as for Source.
func Shipped(name string) (*Scenario, error) {
	data, err := Source(name)
	if err != nil {
		return nil, err
	}
	return Parse(name+".yaml", data)
}
