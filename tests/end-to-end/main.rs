//! The real `gpumon`, over the fake NVML library, through the real `dlopen`, sockets and processes.

mod collect;
mod doctor;
mod faults;
mod hostile_clients;
mod interval;
mod metrics;
mod pause;
mod refusals;
mod serve;
mod show;
mod support;
