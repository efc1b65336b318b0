// Package protobuf decodes what clients send in the protobuf of Kubernetes. Typed clients, and
// controller-runtime, send the kinds of Kubernetes itself in it, and take JSON as an answer.
//
//	client ──"k8s\0", envelope of apiVersion, kind and message──▶ serve ──▶ Decoders ──▶ JSON ──▶ registry
//	client ◀──────────────────────────JSON─────────────────────── serve
//
// Nothing here encodes protobuf.
package protobuf
