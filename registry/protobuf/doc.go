// Package protobuf decodes bodies in the protobuf of Kubernetes. Typed clients, and
// controller-runtime, send the kinds of Kubernetes itself in it, and accept JSON as an answer.
//
//	client ──"k8s\0", envelope of apiVersion, kind and message──▶ serve ──▶ Decoders ──▶ JSON ──▶ registry
//	client ◀──────────────────────────JSON─────────────────────── serve
//
// Nothing here encodes protobuf.
package protobuf
