// Package apiextensions sends the same requests to Kubernetes' own server of custom resources and
// to a server of this module, and compares the answers.
//
//	               ┌──▶ apiextensions-apiserver ──▶ etcd, in a process of their own
//	script, walk ──┤
//	               └──▶ serve ──▶ registry/crd
//
//	both answers ──general──▶ status, headers, objects, causes: equal?
//
// Both serve the kinds of testdata/kinds.yaml, and check the rules in CEL of definitions that they
// are sent. Requests come from five places:
//
//   - The script has each kind of request once, good and bad. An answer may differ where the
//     script says so, and why; the test fails, too, if it no longer differs.
//   - Walks write random widgets and gears, of which some are invalid, by several managers. They
//     leave out what the script says differs. There are three of each kind;
//     WATCHMILL_PARITY_WALKS=100 has a hundred, which take some minutes.
//   - Objects with finalizers and without are deleted by each policy for dependents, in each form.
//   - Definitions change while there are objects, which both must show as the schema is now.
//   - Definitions, good and bad ones, are sent as dry runs to a server that clients define kinds on:
//     both must take or refuse each.
//
// In addition, replicas of package remote follow Kubernetes' server. Requests of the script that are
// sent to them must be answered as by that server, even where ours differs, if a replica passes them
// on. The script says which it does not: what its own server refuses, reads that its cache answers, and
// patches other than applies, which it makes itself.
//
// Messages and descriptions of columns are not compared, since this module has its own texts. Of
// uids, revisions and times it counts only whether there is one. Managers of fields, causes, resources
// and verbs have no order. What else is not compared:
//
//   - the times of managers where Kubernetes has lost one, as in some writes of subresources
//   - warnings of an object that is not there: Kubernetes may have found it in its cache first
//   - the kind in the details of a Status, which is the resource in some errors
//   - causes of which Kubernetes does not say of which field they are
//   - bookmarks, except that at the end of the initial state.
//
// These differences are by design, and not in the script. A deletion's Status has a code and a
// revision. Items of lists have neither apiVersion nor kind, which clients take from the list.
// Kubernetes has a second error for a value that is wrong where the scale has its number.
//
// It is a module of its own, since no other has to compile the API server and etcd. It has only
// tests.
package apiextensions
