// Package controllerruntime runs the tests of sigs.k8s.io/controller-runtime against servers of this
// module, in place of the API server and etcd that they start otherwise.
//
//	go test sigs.k8s.io/controller-runtime/pkg/... ──client-go──▶ serve ──▶ registry ──▶ engine
//
// The packages are those whose tests use an API server most, and take seconds. Most tests that do not
// run need the rules of Kubernetes' own kinds, or a subresource that is updated, such as the approval of
// a certificate. One is of a dry run that differs by design. The test names them. The tests of pkg/cache,
// pkg/manager and others pass, too, and take minutes.
//
// It is a module of its own, since nothing else has to compile these tests. It has only tests.
package controllerruntime
