// Package strategic is strategic merge patches, which kubectl and typed clients send for the
// kinds of Kubernetes itself. Such a patch does not have whole lists: it names the items that it
// changes by a key.
//
//	PATCH, application/strategic-merge-patch+json
//	            │ patch
//	            ▼
//	live ──▶  merge  ──▶ the patched object ──▶ rules of the kind ──▶ stored
//	            ▲
//	            └── the tags patchStrategy and patchMergeKey of the kind's Go type
//
// # Usage
//
// Give [New] to registry.Config.StrategicMerge, or [Untagged] for a kind without such tags that takes these patches
// all the same. Without one of them they are refused with 415, as Kubernetes refuses them for custom resources; clients
// of these send merge patches.
//
// The merging is Kubernetes' own, but a patch is refused that would take longer than to merge one list
// with 5,000 items, those of the patch included. A list that the object does not have yet costs nothing,
// and the items that a patch replaces do not count. A patch that would round an integer of 2^63 or more,
// which it does not know, is refused if the field is for integers.
//
// Programs that do not import this package do not link what it is made of.
package strategic
