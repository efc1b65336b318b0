// Package cel evaluates the rules of custom resources, x-kubernetes-validations, with Kubernetes'
// own library: what a cluster refuses is refused here, with the same text.
//
//	openAPIV3Schema ──Compile──▶ programs ──▶ object, and the one that it replaces ──▶ field errors
//	CustomResourceDefinition ──Check──▶ field errors: syntax, types, estimated cost
//
// # Usage
//
//	definitions, err := crd.Options{Rules: cel.Rules{}}.Parse(file)
//
// and, where clients define kinds,
//
//	definitions, err := apiextensions.New(ctx, apiextensions.Config{Rules: cel.Rules{}})
//
// # What holds
//
// Everything that Kubernetes has: transition rules with oldSelf and optionalOldSelf, message and
// messageExpression, reason, fieldPath, the limits of cost, and its functions, of the version that
// k8s.io/apiserver has in go.mod. All writes are validated, including those of the status and the scale.
// If a value breaks a rule, but the object that is replaced has the same value, there is a warning
// and no error.
//
// A definition with rules must have schemas that Kubernetes takes. Package crd by itself demands
// less.
//
// It is a module of its own, since CEL and the library have many dependencies.
//
// # Concurrency
//
// Everything is safe for concurrent use. Rules are compiled when the first object is validated,
// which blocks writes of its kind for some milliseconds for each rule.
package cel
