package catalog

import (
	"crypto/sha256"
	"encoding/base64"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/watchmill/watchmill/registry"
)

// aggregatedType is the content type of aggregated discovery.
const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// addDiscovery adds the documents of discovery, aggregated and not.
func (c *Catalog) addDiscovery(groups []group) {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	core, named := splitCore(groups)
	if len(core) == 0 {
		core = emptyCore
	}
	for _, g := range named {
		one := g.plain()
		list.Groups = append(list.Groups, one)
		one.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
		c.add("/apis/"+g.name, one)
	}
	c.add("/apis", list)
	c.add("/api", coreVersions(core))
	for _, g := range slices.Concat(core, named) {
		for _, v := range g.versions {
			c.add(v.path(), v.plain())
		}
	}
	c.Aggregated["/apis"] = NewDocument(aggregatedList(named), aggregatedType)
	c.Aggregated["/api"] = NewDocument(aggregatedList(core), aggregatedType)
}

// emptyCore is the core group of a server that has no kinds in it. Clients take v1 List for one of its kinds, by
// which kubectl prints several objects, and only if they have discovered the version, they read such lists.
var emptyCore = []group{{versions: []groupVersion{{GroupVersion: schema.GroupVersion{Version: "v1"}}}}}

// splitCore separates the core group, if it is there, from the others. It is the first, as
// its name is empty.
func splitCore(groups []group) (core, named []group) {
	if len(groups) > 0 && groups[0].name == "" {
		return groups[:1], groups[1:]
	}
	return nil, groups
}

// coreVersions returns the versions of the core group for discovery that is not aggregated.
func coreVersions(core []group) metav1.APIVersions {
	versions := metav1.APIVersions{
		TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{}, ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{},
	}
	for _, g := range core {
		for _, v := range g.versions {
			versions.Versions = append(versions.Versions, v.Version)
		}
	}
	return versions
}

// plain returns the group for discovery that is not aggregated.
func (g *group) plain() metav1.APIGroup {
	one := metav1.APIGroup{Name: g.name}
	for _, v := range g.versions {
		one.Versions = append(one.Versions, metav1.GroupVersionForDiscovery{GroupVersion: v.String(), Version: v.Version})
	}
	one.PreferredVersion = one.Versions[0]
	return one
}

// plain returns the version's resources for discovery that is not aggregated.
func (v *groupVersion) plain() metav1.APIResourceList {
	list := metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: v.String(), APIResources: []metav1.APIResource{},
	}
	for _, k := range v.kinds {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: k.Kind.Plural, SingularName: k.Kind.Singular, Namespaced: !k.Kind.ClusterScoped, Kind: k.Kind.Kind,
			Verbs: k.Verbs, ShortNames: k.Kind.ShortNames, Categories: k.Kind.Categories, StorageVersionHash: storageVersionHash(k.Info),
		})
		for _, sub := range k.subresources {
			// Group and version are empty unless the objects are of another kind, as for scale.
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: k.Kind.Plural + "/" + sub.Subresource, Namespaced: !k.Kind.ClusterScoped, Verbs: sub.Verbs,
				Group: sub.Object.Group, Version: sub.Object.Version, Kind: sub.ObjectKind().Kind,
			})
		}
	}
	return list
}

// storageVersionHash returns what tells clients that objects are stored in another version than
// before, computed as in Kubernetes; it is empty if another server stores them.
func storageVersionHash(of *registry.Info) string {
	if of.StorageVersion == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(of.Kind.Group + "/" + of.StorageVersion + "/" + of.Kind.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}

// The documents of aggregated discovery, apidiscovery.k8s.io/v2.
type (
	discoveryList struct {
		Kind       string           `json:"kind"`
		APIVersion string           `json:"apiVersion"`
		Metadata   struct{}         `json:"metadata"`
		Items      []discoveryGroup `json:"items"`
	}
	discoveryGroup struct {
		Metadata discoveryName      `json:"metadata"`
		Versions []discoveryVersion `json:"versions"`
	}
	discoveryName struct {
		Name string `json:"name"`
	}
	discoveryVersion struct {
		Version   string              `json:"version"`
		Resources []discoveryResource `json:"resources"`
		Freshness string              `json:"freshness"`
	}
	discoveryResource struct {
		Resource         string                 `json:"resource"`
		ResponseKind     discoveryKind          `json:"responseKind"`
		Scope            string                 `json:"scope"`
		SingularResource string                 `json:"singularResource"`
		Verbs            []string               `json:"verbs"`
		ShortNames       []string               `json:"shortNames,omitempty"`
		Categories       []string               `json:"categories,omitempty"`
		Subresources     []discoverySubresource `json:"subresources,omitempty"`
	}
	discoverySubresource struct {
		Subresource  string        `json:"subresource"`
		ResponseKind discoveryKind `json:"responseKind"`
		Verbs        []string      `json:"verbs"`
	}
	discoveryKind struct {
		Group   string `json:"group"`
		Version string `json:"version"`
		Kind    string `json:"kind"`
	}
)

func aggregatedList(groups []group) discoveryList {
	list := discoveryList{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2", Items: []discoveryGroup{}}
	for _, g := range groups {
		one := discoveryGroup{Metadata: discoveryName{g.name}}
		for _, v := range g.versions {
			version := discoveryVersion{Version: v.Version, Resources: []discoveryResource{}, Freshness: "Current"}
			for _, k := range v.kinds {
				version.Resources = append(version.Resources, k.aggregated())
			}
			one.Versions = append(one.Versions, version)
		}
		list.Items = append(list.Items, one)
	}
	return list
}

func (k *servedKind) aggregated() discoveryResource {
	r := discoveryResource{
		Resource: k.Kind.Plural, ResponseKind: discoveryKindOf(&k.Kind), Scope: "Namespaced", SingularResource: k.Kind.Singular,
		Verbs: k.Verbs, ShortNames: k.Kind.ShortNames, Categories: k.Kind.Categories,
	}
	if k.Kind.ClusterScoped {
		r.Scope = "Cluster"
	}
	for _, sub := range k.subresources {
		r.Subresources = append(r.Subresources, discoverySubresource{sub.Subresource, discoveryKindOf(sub.ObjectKind()), sub.Verbs})
	}
	return r
}

func discoveryKindOf(k *registry.Kind) discoveryKind {
	return discoveryKind{k.Group, k.Version, k.Kind}
}
