package apiextensions

import (
	"fmt"
	"slices"

	"github.com/watchmill/watchmill/registry"
)

// conflict says which name of the kind of a definition another kind of the group has, "" if none
// has. The server may have kinds that no definition has defined.
func (d *Definitions) conflict(name string, wanted *registry.Kind) string {
	for _, other := range d.server.Kinds() {
		owner := other.GroupResource().String()
		if other.Group != wanted.Group || owner == name && d.kinds[name] != nil {
			continue
		}
		taken := common(pathNames(wanted), pathNames(&other))
		if taken == "" {
			taken = common(kindNames(wanted), kindNames(&other))
		}
		if taken != "" {
			return fmt.Sprintf("%q is already in use by %s", taken, owner)
		}
	}
	return ""
}

// common returns the first of the names that others have, too, "" if there is none.
func common(names, others []string) string {
	for _, name := range names {
		if name != "" && slices.Contains(others, name) {
			return name
		}
	}
	return ""
}

// pathNames are the names by which clients find the resource.
func pathNames(k *registry.Kind) []string {
	return append([]string{k.Plural, k.Singular}, k.ShortNames...)
}

// kindNames are the kinds of the objects and of their lists.
func kindNames(k *registry.Kind) []string { return []string{k.Kind, k.Kind + "List"} }
