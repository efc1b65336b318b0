// Package interop runs common Kubernetes clients against a server of this module: the
// dynamic, metadata and typed clients and informers of client-go, its RetryWatcher,
// and kubectl of two minor versions, built from their modules.
//
//	kubectl, client-go ──HTTP──▶ serve ──▶ registry ──▶ engine, all in the test's process
//	kubectl, client-go ──HTTP──▶ watchmill serve, a process of its own, with and without TLS
//
// It is a module of its own, since these clients are far heavier than all of what
// they test. It has only tests and the command kubectl. The previous minor version is the
// module kubectlprevious, since a module cannot require two versions of k8s.io/kubectl.
//
// # What the tests hold
//
//   - TestDiscovery: a client finds kinds, in two requests, version and schema.
//   - TestDynamic: writes, and the errors that clients tell apart; concurrent
//     updates that are retried after a conflict lose none.
//   - TestPager: lists in pages are complete.
//   - TestInformer: informers of each kind of client end equal to the engine, and one
//     whose server has shut down sends no storm of requests.
//   - TestRetryWatcher: a watch that is cut every second resumes without a lost or
//     repeated event.
//   - TestReplicas: informers over replicas of one origin that are killed end with the
//     origin's state, and never get an older state of an object after a newer one.
//   - TestResume: informers over such replicas get each event once while servers are
//     killed and the network between them cuts, swallows, slows and delays data. They
//     list again only if a watch is cut before its first event.
//   - TestKubectl: its commands print what they do against Kubernetes: tables, watches,
//     waits, dry runs, and what is wrong with an object. Every test runs with both
//     versions, which so far print the same. The second takes minutes to compile the
//     first time.
//   - TestKubectl_Applies, TestDynamic_Applies, TestControllerRuntime_Applies: server-side
//     apply, with conflicts, by every client that has it.
//   - TestControllerRuntime_Reconciles: a manager of controller-runtime finds the kind,
//     reconciles its objects, and removes finalizers.
//   - TestControllerRuntime_ReconcilesConfigMaps, TestKubectl_KnowsConfigMaps: a manager works on
//     Kubernetes' own kinds, in protobuf, and records events; kubectl makes, applies and patches
//     them as it does there.
//   - TestCoreKinds: typed and dynamic clients, recorders of events, a manager with leader election, and kubectl find
//     ConfigMaps, Secrets, Events, Leases and Namespaces of package serve/corekinds as in a cluster.
//   - TestKubectl_TellsUsersWhatTheyMayDo, TestControllerRuntime_AsksWhichUsersMayReadMetrics: kubectl auth,
//     and a manager that protects its metrics, ask the server about users.
//   - TestKubectl_ActsAsAnother: with kubectl --as a request has the rights of the other user alone, if its
//     sender may act as that one.
//   - TestKubectl_DefinesKinds, TestControllerRuntime_InstallsDefinitions: kinds that clients define
//     while the server runs are served, to kubectl and in the environment of controller-runtime's tests.
//   - TestTypedClient: a typed client scales Kubernetes' own kinds, by apply, too, and evicts pods.
//   - TestLease: client-go's leader election has one leader, and the other once that one
//     releases its lease, or its connection hangs, whatever its clock says.
//   - resttest, a package: Kubernetes' own suite for registries, over package registry.
//   - apiextensions, a module: the same requests to Kubernetes' own server of custom resources
//     and to one of this module, with the answers compared.
//   - controllerruntime, a module: controller-runtime's own tests of its client, builders and sources.
//   - helm, a module: Helm installs, upgrades, rolls back and uninstalls a chart.
//   - conformance, a module: Kubernetes' own end-to-end tests, of what an API server does alone.
//   - TestTLS: the dynamic client, informers and kubectl talk to a process over TLS, with
//     tokens and with certificates, and strangers are refused as they expect.
//   - TestReadme: what the README shows of watchmill serve and kubectl is what they
//     print, and SIGTERM ends the server with status 0.
//
// All but the long form of TestResume run with client-go's own detectors on: one lists
// after every initial state that was watched, and panics at a difference; one panics
// when a cached object was changed. At the end no goroutine is left, of the clients or of
// the server.
package interop
