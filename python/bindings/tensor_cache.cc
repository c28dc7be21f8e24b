#include "tensor_cache.h"

#include "callback.h"

namespace plumbline::python {
TensorFacts* TensorCache::Find(PyObject* tensor, const HostTensor& host) {
  const auto found = items_.find(tensor);
  if (found == items_.end()) return nullptr;
  Item& item = found->second;
  if (PyWeakref_GetObject(item.weak_reference) == tensor &&
      IdentityOf(tensor, host) == item.identity) {
    ++hits_;
    return &item.facts;
  }
  Py_DECREF(item.weak_reference);
  items_.erase(found);
  return nullptr;
}

TensorFacts* TensorCache::Store(PyObject* tensor, const HostTensor& host,
                                const TensorFacts& facts) {
  const TensorIdentity identity = IdentityOf(tensor, host);
  if (identity.version == TensorIdentity::kNoVersion) return nullptr;
  PyObject* weak_reference = PyWeakref_NewRef(tensor, nullptr);
  if (weak_reference == nullptr) {
    DropError();  // a subclass with __slots__ and no __weakref__
    return nullptr;
  }
  const auto [it, inserted] = items_.try_emplace(tensor);
  if (!inserted) Py_DECREF(it->second.weak_reference);
  it->second = {weak_reference, identity, facts};
  return &it->second.facts;
}

void TensorCache::Clear() {
  for (const auto& [tensor, item] : items_) Py_DECREF(item.weak_reference);
  items_.clear();
}

}  // namespace plumbline::python
