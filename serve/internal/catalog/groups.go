package catalog

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/watchmill/watchmill/registry"
)

// group is an API group with its versions, the preferred one first. The name of the core group
// is empty.
type group struct {
	name     string
	versions []groupVersion
}

// groupVersion is the kinds of one version of a group.
type groupVersion struct {
	schema.GroupVersion
	kinds []servedKind
}

// path returns the path of the version's resources.
func (v *groupVersion) path() string {
	return registry.Kind{Group: v.Group, Version: v.Version}.APIPath()
}

// servedKind is a kind and its subresources.
type servedKind struct {
	*registry.Info
	subresources []*registry.Info
}

// groupsOf returns the groups of the resources, in the order in which discovery lists them.
func groupsOf(resources []*registry.Info) []group {
	byVersion := map[schema.GroupVersion]map[string]*servedKind{}
	for _, info := range resources {
		gv, name := schema.GroupVersion{Group: info.Kind.Group, Version: info.Kind.Version}, info.Kind.Plural
		if byVersion[gv] == nil {
			byVersion[gv] = map[string]*servedKind{}
		}
		k := byVersion[gv][name]
		if k == nil {
			k = &servedKind{}
			byVersion[gv][name] = k
		}
		if info.Subresource == "" {
			k.Info = info
		} else {
			k.subresources = append(k.subresources, info)
		}
	}
	return sortedGroups(byVersion)
}

func sortedGroups(byVersion map[schema.GroupVersion]map[string]*servedKind) []group {
	byName := map[string]*group{}
	for gv, kinds := range byVersion {
		v := groupVersion{GroupVersion: gv}
		for _, k := range kinds {
			if k.Info == nil {
				continue // a subresource without its kind
			}
			slices.SortFunc(k.subresources, func(a, b *registry.Info) int { return cmp.Compare(a.Subresource, b.Subresource) })
			v.kinds = append(v.kinds, *k)
		}
		slices.SortFunc(v.kinds, func(a, b servedKind) int { return cmp.Compare(a.Kind.Plural, b.Kind.Plural) })
		if byName[gv.Group] == nil {
			byName[gv.Group] = &group{name: gv.Group}
		}
		byName[gv.Group].versions = append(byName[gv.Group].versions, v)
	}
	all := make([]group, 0, len(byName))
	for _, g := range byName {
		slices.SortFunc(g.versions, func(a, b groupVersion) int { return version.CompareKubeAwareVersionStrings(b.Version, a.Version) })
		all = append(all, *g)
	}
	slices.SortFunc(all, func(a, b group) int { return cmp.Compare(a.name, b.name) })
	return all
}
